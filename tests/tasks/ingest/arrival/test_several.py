"""What is said of a day's dumps does not grow with the leaves."""

from tasks.ingest.arrivals import MOST_SAID, several


def test_few_messages_are_all_said():
    assert several(["a", "b"]) == "a; b"
    assert several(iter(())) == ""
    assert "more like these" not in several(map(str, range(MOST_SAID)))


def test_of_many_the_first_are_said_and_how_many_more():
    said = several(f"region {number}" for number in range(10_000))
    assert said.startswith("region 0; region 1; ")
    assert said.endswith(f"region {MOST_SAID - 1}; and 9,988 more like these")
    assert len(said) < 300
