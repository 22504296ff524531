"""Files edited while a run works, and new estimates that were interrupted."""

import json
from datetime import date

import pytest

from optstream.catalogue import read_catalogue, read_published
from optstream.errors import LedgerError
from tasks.release import pipeline as steps
from tasks.release import publish, revise
from tasks.release.revise import due
from tasks.release.run import Status
from tests.tasks.release.conftest import NONE, SUMMER_TIME
from tests.tasks.release.vintage_nights import DAYS, listed, revised
from tests.tasks.two_regions import CONFIGURATION, STEPS, released_by

DAY = date(2016, 6, 1)
BEFORE_ESTIMATE = STEPS[:6]
OF_THE_DRAW = ("epsilon_plan", "long_spans", "supplier_rounding", "bounds", "metered")


def stated(installation, day=DAY):
    entry = read_catalogue(installation.folder / "published").entry(day)
    return json.loads((installation.folder / "published" / entry.manifest).read_text())["statement"]


def drawn(installation, day=DAY):
    """A run died after its draw."""
    installation.release(day, steps=BEFORE_ESTIMATE)
    installation.later(hours=1)


def published(installation):
    return installation.release(DAY)[DAY].outcome


@pytest.fixture
def as_was(installation, tmp_path_factory):
    """What the same configuration states of the day where nobody edits it."""

    def state():
        other = type(installation)(tmp_path_factory.mktemp("other"))
        (other.folder / "optstream.toml").write_text((installation.folder / "optstream.toml").read_text())
        other.simulate(DAY)
        other.released(DAY)
        return stated(other)

    return state


ROUNDED = ('alpha = "1"', 'alpha = "0.5"'), ("[input]", '[input]\nsupplier_rounding = "0.5"')


@pytest.mark.parametrize(
    "edits",
    [
        (("[budget]", '[budget]\nstream_share = "1/2"'),),
        (('restatement_share = "0"', 'restatement_share = "1/10"'),),
        (('levels = ["1/2", "1/2"]', 'levels = ["1/10", "9/10"]'),),
        (("n_samples = 10", "n_samples = 20"),),
        tuple((new, old) for old, new in ROUNDED[::-1]),
        (('bounds = ["0", "20000"]', 'bounds = ["-1", "1"]'),),
    ],
    ids=["share", "restatements", "levels", "samples", "rounding", "bounds"],
)
def test_the_first_statement_is_of_the_draw_whatever_is_configured_since(installation, as_was, edits):
    for before, after in ROUNDED:
        installation.configure(before, after)
    expected = as_was()
    drawn(installation)
    for before, after in edits:
        installation.configure(before, after)
    assert published(installation).status is Status.PUBLISHED
    found = stated(installation)
    for key in (*OF_THE_DRAW, "privacy_in_words"):
        assert found[key] == expected[key], key
    now = found["mechanism"].pop("estimated_by", expected["mechanism"])
    assert found["mechanism"] == expected["mechanism"]
    assert now == installation.settings.describe_mechanism(DAY)
    installation.assert_sound()


def test_what_is_lost_is_published_again_after_the_edit(installation):
    drawn(installation)
    installation.configure("[budget]", '[budget]\nstream_share = "1/2"')
    assert published(installation).status is Status.PUBLISHED
    before = installation.files("published")
    for path in (*before, *installation.files("trusted/staging")):
        if path.suffix == ".parquet" or path.parts[1] in ("manifests", "staging"):
            (installation.folder / path).unlink()
    (outcome,) = installation.publish_again(DAY)
    assert outcome.status is Status.PUBLISHED, outcome
    assert {path: installation.files("published")[path] for path in before} == before


def test_a_draw_that_kept_its_inputs_alone_is_stated_as_before(installation):
    drawn(installation)
    (path,) = (installation.folder / "trusted/inputs").rglob("*.json")
    inputs = json.loads(path.read_bytes())["inputs"]
    path.write_text(json.dumps(inputs))
    assert published(installation).status is Status.PUBLISHED
    told = [one["facets"]["optstream_inputs"]["hmac_sha256"] for one in installation.lineage()[0]["inputs"]]
    assert {name: tag for files in told for name, tag in files.items()} == inputs
    found = stated(installation)
    assert found["epsilon_plan"] == "1"
    assert not {"bounds", "metered"} & set(found), "nobody kept what it was drawn under"


CUTS = '[features]\n"day parts" = ["01:00", "12:00", "23:00"]\nday = []\n[input]'
TURNED = '[features]\nday = []\n"day parts" = ["07:00", "12:00", "18:00"]\n[input]'


@pytest.mark.parametrize("features", [CUTS, TURNED], ids=["cut otherwise", "in another order"])
def test_sums_of_other_features_are_not_taken_for_those_of_now(installation, features):
    drawn(installation)
    text = (installation.folder / "optstream.toml").read_text()
    installation.configure("[input]", features)
    outcome = published(installation)
    assert outcome.status is Status.FAILED
    assert "was drawn with [features]" in outcome.message
    (installation.folder / "optstream.toml").write_text(text)
    assert published(installation).status is Status.PUBLISHED
    installation.assert_sound()


def test_the_mechanism_of_the_draw_is_named_where_it_is_another_now(installation):
    drawn(installation)
    (installation.folder / "optstream.toml").write_text(released_by("Laplace", CONFIGURATION))
    outcome = published(installation)
    assert outcome.status is Status.FAILED
    assert 'drawn with [mechanism] name "OptStream", which would be "Laplace" by now' in outcome.message
    assert f"`optstream withdraw --date {DAY} --reason WHY` gives it up" in outcome.message
    installation.later(hours=1)
    assert installation.withdraw(DAY).status is Status.VOID


def test_values_are_not_moved_to_other_times_by_newer_time_zone_data(installation, zone):
    zone(SUMMER_TIME)
    drawn(installation)
    zone(NONE)
    assert (
        '["2016-05-31 22:00:00+00:00", "2016-06-01 21:30:00+00:00"], which' in published(installation).message
    )
    zone(SUMMER_TIME)
    assert published(installation).status is Status.PUBLISHED


@pytest.mark.parametrize(
    "edit",
    [
        lambda told: {**told, "epsilon_plan": "much"},
        lambda told: {**told, "mechanism": "Laplace"},
        lambda told: {**told, "long_spans": 3},
        lambda told: {**told, "bounds": ["1", "0"]},
        lambda told: {**told, "metered": "no"},
        lambda told: {**told, "supplier_rounding": None},
        lambda told: "nothing",
        None,
    ],
    ids=["epsilon", "mechanism", "spans", "bounds", "metered", "rounding", "all", "cut"],
)
def test_a_record_of_a_draw_that_was_edited_by_hand_is_named_with_its_remedy(installation, edit):
    drawn(installation)
    (path,) = (installation.folder / "trusted/inputs").rglob("1.json")
    kept = path.read_text()
    document = json.loads(kept)
    path.write_text(
        kept[:-9] if edit is None else json.dumps({**document, "stated": edit(document["stated"])})
    )
    outcome = published(installation)
    assert outcome.status is Status.FAILED
    assert f"{path.relative_to(installation.folder)}" in outcome.message
    assert "restore it from a backup" in outcome.message
    path.write_text(kept)
    installation.later(hours=1)
    assert published(installation).status is Status.PUBLISHED


def stages(installation, work):
    """A new estimate up to where its bytes are recorded and not shown."""
    run = installation.run()
    (staged,) = steps.revise_estimates(run, [work])
    assert isinstance(staged, revise.StagedVintage)
    return run, staged


def half_shown(installation):
    """The new estimate of the first of two released days, `stages` of it."""
    installation.released(*DAYS[:2])
    (work,) = due(installation.run())
    return stages(installation, work)


def test_a_withdrawal_in_between_is_not_undone(learning):
    run, staged = half_shown(learning)
    learning.withdraw(DAYS[0])
    (late,) = steps.publish_revisions(run, [staged])
    assert late.outcome.status is Status.FAILED
    assert "was withdrawn" in late.outcome.message
    assert read_published(learning.folder / "published")["date"].unique().to_list() == [DAYS[1]]


def test_an_owner_that_was_thought_dead_shows_nothing(learning):
    run, stale = half_shown(learning)
    learning.later(hours=1)
    assert {day: one.status for day, one in revised(learning).items()} == {DAYS[0]: Status.PUBLISHED}
    after = learning.files("published")
    with pytest.raises(LedgerError, match="taken over"):
        publish.publish(run, [stale])
    assert learning.files("published") == after
    assert listed(learning)[DAYS[0]] == 1
    learning.assert_sound()


def test_a_run_that_died_before_it_showed_is_finished_with_the_same_bytes(learning):
    _, staged = half_shown(learning)
    assert listed(learning)[DAYS[0]] == 0
    learning.later(hours=1)
    assert revised(learning)[DAYS[0]].status is Status.PUBLISHED
    entry = read_catalogue(learning.folder / "published").entry(DAYS[0])
    assert (entry.vintage, entry.file_hash) == (1, staged.staged.file_hash)
    learning.assert_sound()


def test_what_was_listed_is_recorded_though_its_day_is_never_due_again(learning):
    learning.released(*DAYS[:3])
    work = next(work for work in due(learning.run()) if work.day == DAYS[0])
    publish.publish(*(lambda run, staged: (run, [staged]))(*stages(learning, work)))
    learning.later(hours=1)
    learning.configure("revise_days = 2", "revise_days = 0")
    assert due(learning.run()) == []
    assert any("listed and not recorded" in line for line in learning.problems())
    revise.record_listed(learning.run())
    learning.assert_sound()
    head = learning.ledger.head("two-regions")
    revise.record_listed(learning.run())
    assert learning.ledger.head("two-regions") == head


def test_what_a_listed_estimate_replaced_leaves_data_though_its_run_died_before(learning):
    """Else whoever reads data/ without the catalogue finds the day twice."""
    run, staged = half_shown(learning)
    before = next((learning.folder / "published" / "data").glob(f"date={DAYS[0]}/*"))
    kept = before.read_bytes()
    publish.publish(run, [staged])
    before.write_bytes(kept)
    assert len(list(before.parent.iterdir())) == 2
    learning.later(hours=1)
    revise.record_listed(learning.run())
    assert len(list(before.parent.iterdir())) == 1
    assert before.name in [path.name for path in (learning.folder / "published" / "superseded").rglob("*")]
    learning.assert_sound()


@pytest.mark.parametrize("taken_back", ["withdrawn", "known", "restated"])
def test_what_rests_on_a_day_that_was_taken_back_meanwhile_is_not_shown(learning, taken_back):
    run, staged = half_shown(learning)
    if taken_back == "withdrawn":
        learning.withdraw(DAYS[1])
    elif taken_back == "known":
        learning.compromise(DAYS[1], "a stolen disk")
    else:
        assert learning.release(DAYS[1], restate=True)[DAYS[1]].outcome.status is Status.PUBLISHED
    (late,) = steps.publish_revisions(run, [staged])
    assert late.outcome.status is Status.FAILED
    assert "that rests on it is not shown" in late.outcome.message
    assert listed(learning)[DAYS[0]] == 0


def test_what_was_staged_is_not_taken_up_once_it_rests_on_known_noise(learning):
    learning.released(*DAYS[:3])
    work = next(work for work in due(learning.run()) if work.day == DAYS[1])
    stages(learning, work)
    learning.compromise(DAYS[0], "a stolen disk")
    learning.later(hours=1)
    assert revised(learning)[DAYS[1]].status is Status.UNCHANGED
    assert listed(learning)[DAYS[1]] == 0
    assert learning.ledger.verify() == []
