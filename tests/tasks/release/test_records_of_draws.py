"""What is recorded of a draw: hashes of its input files, and what it was planned for."""

import hashlib
import hmac
import json
import stat
from contextlib import nullcontext
from datetime import date

import polars as pl
import pytest

from optstream.errors import LedgerError
from tasks.release import pipeline as steps
from tasks.release.lineage import UNKNOWN, input_key
from tasks.release.run import Status
from tests.failing import Death, raising
from tests.tasks.two_regions import CONFIGURATION, DRAWN, released_by

FIRST, SECOND = date(2016, 6, 1), date(2016, 6, 2)
DUMP = f"region=84/date={FIRST}/part-0.parquet"


def stated(installation):
    sources = installation.lineage()[0]["inputs"]
    return [source["facets"]["optstream_inputs"]["hmac_sha256"] for source in sources]


def expected(installation, name):
    key = (installation.folder / "trusted/input.key").read_bytes()
    return hmac.new(key, (installation.folder / "dumps" / name).read_bytes(), hashlib.sha256).hexdigest()


def test_with_the_key_alone_an_auditor_can_tell_which_files_a_release_came_from(installation):
    """No hash of an input stands in the public zone, and no plain one anywhere."""
    installation.released(FIRST)
    files = {name: tag for source in stated(installation) for name, tag in source.items()}
    names = [f"region={leaf}/date={FIRST}/part-0.parquet" for leaf in ("84", "11")]
    assert files == {name: expected(installation, name) for name in names}
    data = (installation.folder / "dumps" / DUMP).read_bytes()
    public, trusted = (installation.files(place).values() for place in ("published", "trusted"))
    assert not any(files[DUMP].encode() in written for written in public)
    for algorithm in ("md5", "sha1", "sha256", "sha512", "blake2b", "blake2s"):
        plain = hashlib.new(algorithm, data).hexdigest().encode()
        assert not any(plain in written for written in (*public, *trusted))


def test_the_key_is_made_once_for_its_owner_alone(installation):
    key = input_key(installation.settings)
    assert input_key(installation.settings) == key
    file = installation.folder / "trusted/input.key"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert sorted(path.name for path in file.parent.iterdir()) == [".lock", "input.key"]
    file.write_bytes(b"short")
    with pytest.raises(LedgerError, match="must hold 32 bytes"):
        input_key(installation.settings)
    file.unlink()
    file.symlink_to("mounted/later")
    with pytest.raises(FileNotFoundError):  # else restated days would have hashes by another key
        input_key(installation.settings)
    assert file.is_symlink()


@pytest.mark.parametrize("is_drawn", [True, False])
def test_a_release_names_the_files_of_the_draw_that_counted(installation, monkeypatch, is_drawn):
    with monkeypatch.context() as patched:
        if not is_drawn:  # as a kill: nothing after it runs
            patched.setattr("tasks.release.draw.DrawingFile.fill", raising(Death))
            patched.setattr("tasks.release.draw._give_up", lambda *_: None)
        with nullcontext() if is_drawn else pytest.raises(Death):
            installation.release(FIRST, steps=DRAWN)
    before, path = expected(installation, DUMP), installation.folder / "dumps" / DUMP
    pl.read_parquet(path).with_columns(pl.col("load_mw") + 1).write_parquet(path)
    installation.later(hours=1)
    assert installation.status(FIRST) is Status.PUBLISHED
    assert before != expected(installation, DUMP)
    assert stated(installation)[0][DUMP] == (before if is_drawn else expected(installation, DUMP))


def test_a_release_without_record_says_unknown(installation):
    installation.cut_short(FIRST)
    for path in (installation.folder / "trusted/inputs").rglob("*.json"):
        path.unlink()
    installation.release(FIRST)
    assert stated(installation) == [UNKNOWN, UNKNOWN]


@pytest.mark.parametrize("how", ["written to", "replaced"])
def test_a_file_that_changes_while_it_is_read_refuses_its_day_alone(installation, monkeypatch, how):
    path, real = installation.folder / "dumps" / DUMP, steps.ingest

    def meanwhile(settings, dumps):
        read = real(settings, dumps)
        data = path.read_bytes()
        if how == "replaced":
            path.rename(path.with_suffix(".old"))
        path.write_bytes(data)
        return read

    monkeypatch.setattr(steps, "ingest", meanwhile)
    works = installation.release(FIRST, SECOND)
    assert works[FIRST].status is Status.REFUSED
    assert works[FIRST].message.startswith(f"{DUMP} changed while it was read")
    assert works[SECOND].status is Status.PUBLISHED
    assert installation.record(FIRST) is None


STATED = ("epsilon_plan", "long_spans", "supplier_rounding", "bounds", "metered", "privacy_in_words")
ROUNDED = ('alpha = "1"', 'alpha = "0.5"'), ("[input]", '[input]\nsupplier_rounding = "0.5"')
EDITS = (
    ("[budget]", '[budget]\nstream_share = "1/2"'),
    ('restatement_share = "0"', 'restatement_share = "1/10"'),
    ('levels = ["1/2", "1/2"]', 'levels = ["1/10", "9/10"]'),
    ("n_samples = 10", "n_samples = 20"),
    *((new, old) for old, new in ROUNDED[::-1]),
    ('bounds = ["0", "20000"]', 'bounds = ["-1", "1"]'),
)


def test_the_first_statement_is_of_the_draw_whatever_is_configured_since(installation, tmp_path_factory):
    for before, after in ROUNDED:
        installation.configure(before, after)
    unedited = type(installation)(tmp_path_factory.mktemp("other"))
    (unedited.folder / "optstream.toml").write_text((installation.folder / "optstream.toml").read_text())
    unedited.simulate(FIRST)
    unedited.released(FIRST)
    expected = unedited.statement(FIRST)
    installation.cut_short(FIRST)
    for before, after in EDITS:
        installation.configure(before, after)
    assert installation.status(FIRST) is Status.PUBLISHED
    found = installation.statement(FIRST)
    assert {key: found[key] for key in STATED} == {key: expected[key] for key in STATED}
    now = found["mechanism"].pop("estimated_by", expected["mechanism"])
    assert found["mechanism"] == expected["mechanism"]
    assert now == installation.settings.describe_mechanism(FIRST)
    assert installation.problems() == []


def test_a_draw_that_kept_its_inputs_alone_is_stated_as_before(installation):
    installation.cut_short(FIRST)
    (path,) = (installation.folder / "trusted/inputs").rglob("*.json")
    inputs = json.loads(path.read_bytes())["inputs"]
    path.write_text(json.dumps(inputs))
    assert installation.status(FIRST) is Status.PUBLISHED
    stated = [one["facets"]["optstream_inputs"]["hmac_sha256"] for one in installation.lineage()[0]["inputs"]]
    assert {name: tag for files in stated for name, tag in files.items()} == inputs
    found = installation.statement(FIRST)
    assert found["epsilon_plan"] == "1"
    assert not {"bounds", "metered"} & set(found), "nobody kept what it was drawn under"


FEATURES = "was drawn with [features]"
OTHERWISE = {
    "cut otherwise": ('[features]\n"day parts" = ["01:00", "12:00", "23:00"]\nday = []\n[input]', FEATURES),
    "other order": ('[features]\nday = []\n"day parts" = ["07:00", "12:00", "18:00"]\n[input]', FEATURES),
    "mechanism": (None, 'drawn with [mechanism] name "OptStream", which would be "Laplace" by now'),
}


@pytest.mark.parametrize(("features", "words"), OTHERWISE.values(), ids=list(OTHERWISE))
def test_measurements_are_not_taken_for_those_of_another_configuration(installation, features, words):
    installation.cut_short(FIRST)
    path = installation.folder / "optstream.toml"
    text = path.read_text()
    path.write_text(text.replace("[input]", features) if features else released_by("Laplace", CONFIGURATION))
    remedy = f"`optstream withdraw --date {FIRST} --reason WHY` gives it up"
    installation.ends(FIRST, Status.FAILED, words, remedy)
    installation.later(hours=1)
    if features is None:
        assert installation.withdraw(FIRST).status is Status.VOID
        return
    path.write_text(text)
    assert installation.status(FIRST) is Status.PUBLISHED
    assert installation.problems() == []


SPOILT = (
    lambda stated: {**stated, "epsilon_plan": "much"},
    lambda stated: {**stated, "mechanism": "Laplace"},
    lambda stated: {**stated, "long_spans": 3},
    lambda stated: {**stated, "bounds": ["1", "0"]},
    lambda stated: {**stated, "metered": "no"},
    lambda stated: {**stated, "supplier_rounding": None},
    lambda stated: "nothing",
    None,
)


def test_a_record_of_a_draw_that_was_edited_by_hand_is_named_with_its_remedy(installation):
    installation.cut_short(FIRST)
    (path,) = (installation.folder / "trusted/inputs").rglob("1.json")
    kept = path.read_text()
    document = json.loads(kept)
    for edit in SPOILT:
        path.write_text(json.dumps({**document, "stated": edit(document["stated"])}) if edit else kept[:-9])
        named = str(path.relative_to(installation.folder))
        installation.ends(FIRST, Status.FAILED, named, "restore it from a backup")
        installation.later(hours=1)
    path.write_text(kept)
    assert installation.status(FIRST) is Status.PUBLISHED
