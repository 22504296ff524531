"""Death at any step of putting or withdrawing answers: none is read wrong, the next call completes."""

from contextlib import suppress
from datetime import date

import pytest

from optstream import ask, read_answers
from optstream.catalogue import check_files
from optstream.catalogue.questions.published_answers import put_answers
from optstream.catalogue.questions.question import Question
from optstream.errors import PublicationError
from tests.by_night import few
from tests.optstream.catalogue.backends.test_store_crash import DeathError, at_each_change, copied, dying_at
from tests.optstream.catalogue.folders import memory_folder, take_back
from tests.optstream.catalogue.test_crash import run_with_death_at_each_step

DAYS = [date(2016, 2, number) for number in (1, 2, 3)]
ASKED = (Question("sums", "sum", 4, level=1),)

pytestmark = pytest.mark.slow


def no_wrong_answer(folder):
    """What is read is what follows from the listed releases, or it is refused."""
    with suppress(PublicationError):
        found = read_answers(folder)
        right = ask(folder, ASKED)
        assert found.equals(right.filter(right["date"].is_in(found["date"].unique().to_list())))


@pytest.fixture
def revised(put_all, put):
    """Answered days, one of which has a new estimate since."""

    def revised(folder):
        put_all(folder, *DAYS)
        put_answers(folder, ASKED, 30)
        put(folder, DAYS[1], vintage=2, shift=5.0, head="h2")

    return revised


def completed(folder):
    no_wrong_answer(folder)
    put_answers(folder, ASKED, 30)
    assert [line for line in check_files(folder) if "question" in line] == []
    assert read_answers(folder).equals(ask(folder, ASKED))


def without_the_second_day(folder):
    take_back(folder, DAYS[1], head="h3", last_revision=1)


def taken_back(folder):
    """Once the same call has completed the work, no answer is left that the day is in."""
    no_wrong_answer(folder)
    without_the_second_day(folder)
    assert [line for line in check_files(folder) if "question" in line] == []
    assert set(read_answers(folder)["date"]) <= {DAYS[0]}


EACH = pytest.mark.parametrize("each", few([3, 1], 1))
BOTH = pytest.mark.parametrize(
    ("work", "check"),
    [(lambda folder: put_answers(folder, ASKED, 30), completed), (without_the_second_day, taken_back)],
    ids=["put", "withdraw"],
)


@BOTH
@EACH
def test_on_a_disk(tmp_path, monkeypatch, revised, work, check, each):
    assert run_with_death_at_each_step(tmp_path, monkeypatch, revised, work, check, each) > 10


@BOTH
@EACH
def test_in_a_store(monkeypatch, revised, work, check, each):
    store = memory_folder()
    revised(f"{store.name}/before")
    for n in range(0, 60, each):
        folder, points = copied(store, n), []
        with at_each_change(monkeypatch, dying_at(n, points)):
            try:
                work(folder)
                break
            except DeathError:
                pass
        check(folder)
    assert 5 < n < 59
