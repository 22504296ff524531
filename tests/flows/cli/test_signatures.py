"""`optstream keys new` and `optstream verify-published`: their words and exit codes."""

import json
import stat
from datetime import UTC, date, datetime

import pytest

from optstream.errors import ConfigurationError
from tests.flows.command import invoke
from tests.tasks.two_regions import CONFIGURATION, Installation

DAYS = [date(2016, 6, 1), date(2016, 6, 2)]
ARMOUR = "-----BEGIN PUBLIC KEY-----"


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "optstream.toml").write_text(CONFIGURATION)
    installation = Installation(tmp_path, datetime(2016, 7, 1, tzinfo=UTC))
    installation.simulate(*DAYS)
    return installation


@pytest.mark.slow
def test_a_key_is_made_named_and_used(here):
    said = invoke("keys", "new")
    assert said.exit_code == 0
    key = here.folder / "trusted/signing.pem"
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert ARMOUR in said.output
    assert "PRIVATE" not in said.output
    assert key.read_text().splitlines()[1] not in said.output
    line = said.output.splitlines()[-1].rpartition(": ")[2]
    assert line == f'signing_key = "{key}"'
    here.configure('value = "load_mw"\n[trusted]', f'value = "load_mw"\n{line}\n[trusted]')
    with pytest.raises(ConfigurationError, match="is there already, and no key is overwritten"):
        invoke("keys", "new")
    here.release(*DAYS)
    found = invoke("verify-published", "published", "--public-key", "trusted/signing.pub")
    assert (found.exit_code, found.output) == (
        0,
        "nothing is wrong: 2 days up to 2016-06-02, catalogue number 1, hashes and signature compared\n",
    )


@pytest.mark.slow
def test_without_a_key_hashes_are_compared_and_with_one_unsigned_is_a_problem(here):
    here.release(*DAYS)
    invoke("keys", "new")
    assert invoke("verify-published", "published").output == (
        "nothing is wrong: 2 days up to 2016-06-02, catalogue unnumbered, hashes compared\n"
    )
    found = invoke("verify-published", "published", "--public-key", "trusted/signing.pub", "--json")
    assert found.exit_code == 1
    document = json.loads(found.output)
    assert (document["format"], document["days"], document["signature_checked"]) == (
        "optstream.verified/1",
        2,
        True,
    )
    assert "catalogue.json is not signed by key" in document["problems"][0]
