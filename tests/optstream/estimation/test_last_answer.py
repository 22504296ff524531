"""The last answer is kept, and gone before another is worked out."""

from weakref import ref

from optstream.history.posterior import last_answer


class Answer:
    """What can be looked after."""


def test_the_last_answer_is_kept_and_let_go_of_before_the_next():
    seen, alive = [], []

    @last_answer
    def answer(question):
        alive.append([one() is not None for one in seen])
        found = Answer()
        seen.append(ref(found))
        return found

    first = answer(1)
    assert answer(1) is first
    assert len(seen) == 1
    del first
    answer(2)
    assert alive[1] == [False]
    answer(1)
    assert len(seen) == 3
