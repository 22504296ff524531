"""The tables in batches: everything, once, from one moment."""

import pytest


def collect(ledger, n_rows):
    tables = {}
    for table, columns in ledger.batches(n_rows):
        sizes = {len(values) for values in columns.values()}
        assert len(sizes) == 1
        assert max(sizes) <= n_rows
        known = tables.setdefault(table, {name: [] for name in columns})
        for name, values in columns.items():
            known[name] += values
    return tables


@pytest.mark.parametrize("n_rows", [1, 1000])
@pytest.mark.slow
def test_batches_of_any_size_hold_the_same_rows(ledger, publish, reserve, kit, n_rows):
    publish("day 0")
    reserve("day 4", kit.plan(4, "1/8"))
    tables = collect(ledger, n_rows)
    assert list(tables) == ["streams", "releases", "spends", "events"]
    assert tables["streams"]["epsilon"] == ["1"]
    assert tables["releases"]["period"] == ["day 0", "day 4"]
    assert tables["spends"]["in_force"] == [1, 1]
    assert tables["events"]["number"] == list(range(len(tables["events"]["number"])))
    assert tables["events"]["hash"][-1] == ledger.head("load")


def test_spends_that_were_settled_say_which_are_in_force(ledger, drawn, kit):
    drawn(outcome=kit.plan(0, "1/8"))
    spends = collect(ledger, 100)["spends"]
    assert (spends["generation"], spends["in_force"]) == ([1, 2], [0, 1])


def test_what_is_written_meanwhile_is_not_in_it(ledger, reserve, kit):
    reserve("day 0")
    batches = ledger.batches(1)
    next(batches)
    reserve("day 4", kit.plan(4, "1/8"))
    rest = [columns for table, columns in batches if table == "releases"]
    assert [period for columns in rest for period in columns["period"]] == ["day 0"]
