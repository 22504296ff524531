"""Configuration and records that are edited between a draw and its publication."""

import json
from datetime import date

import pytest

from tasks.release.run import Status
from tests.tasks.release.conftest import NONE, SUMMER_TIME
from tests.tasks.two_regions import CONFIGURATION, released_by

DAY = date(2016, 6, 1)
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
    unedited.simulate(DAY)
    unedited.released(DAY)
    expected = unedited.statement(DAY)
    installation.cut_short(DAY)
    for before, after in EDITS:
        installation.configure(before, after)
    assert installation.status(DAY) is Status.PUBLISHED
    found = installation.statement(DAY)
    assert {key: found[key] for key in STATED} == {key: expected[key] for key in STATED}
    now = found["mechanism"].pop("estimated_by", expected["mechanism"])
    assert found["mechanism"] == expected["mechanism"]
    assert now == installation.settings.describe_mechanism(DAY)
    assert installation.problems() == []


def test_a_draw_that_kept_its_inputs_alone_is_stated_as_before(installation):
    installation.cut_short(DAY)
    (path,) = (installation.folder / "trusted/inputs").rglob("*.json")
    inputs = json.loads(path.read_bytes())["inputs"]
    path.write_text(json.dumps(inputs))
    assert installation.status(DAY) is Status.PUBLISHED
    stated = [one["facets"]["optstream_inputs"]["hmac_sha256"] for one in installation.lineage()[0]["inputs"]]
    assert {name: tag for files in stated for name, tag in files.items()} == inputs
    found = installation.statement(DAY)
    assert found["epsilon_plan"] == "1"
    assert not {"bounds", "metered"} & set(found), "nobody kept what it was drawn under"


OTHERWISE = {
    "cut otherwise": (
        '[features]\n"day parts" = ["01:00", "12:00", "23:00"]\nday = []\n[input]',
        "was drawn with [features]",
    ),
    "in another order": (
        '[features]\nday = []\n"day parts" = ["07:00", "12:00", "18:00"]\n[input]',
        "was drawn with [features]",
    ),
    "mechanism": (None, 'drawn with [mechanism] name "OptStream", which would be "Laplace" by now'),
}


@pytest.mark.parametrize(("features", "words"), OTHERWISE.values(), ids=list(OTHERWISE))
def test_measurements_are_not_taken_for_those_of_another_configuration(installation, features, words):
    installation.cut_short(DAY)
    path = installation.folder / "optstream.toml"
    text = path.read_text()
    path.write_text(text.replace("[input]", features) if features else released_by("Laplace", CONFIGURATION))
    remedy = f"`optstream withdraw --date {DAY} --reason WHY` gives it up"
    installation.ends(DAY, Status.FAILED, words, remedy)
    installation.later(hours=1)
    if features is None:
        assert installation.withdraw(DAY).status is Status.VOID
        return
    path.write_text(text)
    assert installation.status(DAY) is Status.PUBLISHED
    assert installation.problems() == []


def test_values_are_not_moved_to_other_times_by_newer_time_zone_data(installation, zone):
    zone(SUMMER_TIME)
    installation.cut_short(DAY)
    zone(NONE)
    words = '["2016-05-31 22:00:00+00:00", "2016-06-01 21:30:00+00:00"], which'
    assert words in installation.outcome(DAY).message
    zone(SUMMER_TIME)
    assert installation.status(DAY) is Status.PUBLISHED


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
    installation.cut_short(DAY)
    (path,) = (installation.folder / "trusted/inputs").rglob("1.json")
    kept = path.read_text()
    document = json.loads(kept)
    for edit in SPOILT:
        path.write_text(json.dumps({**document, "stated": edit(document["stated"])}) if edit else kept[:-9])
        named = str(path.relative_to(installation.folder))
        installation.ends(DAY, Status.FAILED, named, "restore it from a backup")
        installation.later(hours=1)
    path.write_text(kept)
    assert installation.status(DAY) is Status.PUBLISHED
