"""docs/monitoring.md: every state, alarm, key and format is on it, and its configuration is read."""

import re
from pathlib import Path

from flows.cli.watch import LETTERS, RULER
from tasks.config import load_settings
from tasks.config.example import EXAMPLE
from tasks.config.schema import Watch
from tasks.monitor.alarms import EXPIRY_WARNING
from tasks.monitor.facts import ALIKE
from tasks.monitor.view import Kind, Severity
from tasks.schemas.json_schema import DOCUMENTS

PAGE = (Path(__file__).parents[2] / "docs/monitoring.md").read_text(encoding="utf-8")


def test_every_state_has_its_letter_and_every_alarm_its_row():
    for state, letter in LETTERS.items():
        assert re.search(rf"^\| `{re.escape(letter)}` \| \**{state.value}\** \|", PAGE, re.MULTILINE), state
    rows = " ".join(re.findall(r"^\| (`[a-z`, -]*.*?) \| ", PAGE, re.MULTILINE))
    assert [kind.value for kind in Kind if f"`{kind.value}`" not in rows] == []
    assert f"(a {Severity.WARNING.value})" in PAGE
    assert f"within {EXPIRY_WARNING.days} days" in PAGE
    assert f"least {ALIKE}" in PAGE
    assert RULER in PAGE


def test_the_pages_configuration_is_read_and_has_every_key(tmp_path):
    (block,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    table, source = block.split("[input]\n")
    file = tmp_path / "optstream.toml"
    file.write_text(EXAMPLE.replace("[input]", "[input]\n" + source + "#", 1) + table, encoding="utf-8")
    settings = load_settings(file)
    assert settings.input.raw_retention_days == 30
    assert settings.watch is not None
    assert [key for key in Watch.model_fields if f"{key} = " not in table] == []
    assert (settings.watch.late_after, settings.watch.max_runtime) == (
        Watch().late_after,
        Watch().max_runtime,
    )


def test_the_examples_commented_table_is_read(tmp_path):
    start, stop = EXAMPLE.index("# [watch]"), EXAMPLE.index("[ledger]")
    file = tmp_path / "optstream.toml"
    file.write_text(
        EXAMPLE[:start] + EXAMPLE[start:stop].replace("# ", "", 1).replace("\n# ", "\n") + EXAMPLE[stop:]
    )
    assert load_settings(file).watch.notify == ("custom-webhook/optstream",)


def test_the_formats_that_have_a_schema_are_on_the_page():
    assert all(f"`{name}`" in PAGE for name in DOCUMENTS)
