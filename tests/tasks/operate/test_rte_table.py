"""The text of a file of RTE's: what is read, and what is refused on which line."""

from datetime import datetime, timedelta

import polars as pl
import pytest

from optstream.errors import DumpError
from tasks.operate.rte import parse


def refused(made, lines, message):
    with pytest.raises(DumpError, match=message):
        parse(made.encoded(lines))


def test_every_half_hour_is_read_also_where_the_clock_changes(made):
    region, rows = parse(made.encoded(made.rte_lines()))
    assert region == "84"
    assert rows.schema == {"timestamp": pl.Datetime("us"), "load_mw": pl.Float64, "line": pl.UInt32}
    expected = [datetime(2016, 3, 25) + timedelta(minutes=30) * slot for slot in range(4 * 48)]
    assert rows["timestamp"].to_list() == expected  # 27 March has its 02:00 and 02:30
    loads = [made.load_of("84", stamp.date(), 2 * stamp.hour + stamp.minute // 30) for stamp in expected]
    assert rows["load_mw"].to_list() == loads
    assert rows["line"].to_list() == [2 + 2 * slot for slot in range(4 * 48)]


@pytest.mark.parametrize(
    ("line", "cells", "message"),
    [
        (1, {4: "Conso"}, "line 1: .* the column Consommation once.* here 0 times"),
        (1, {5: "Date"}, "line 1: .* the column Date once.* here 2 times"),
        (9, {0: "France"}, "line 9: Périmètre must name one region"),
        (9, {0: "Bretagne"}, "line 9: Périmètre must name one region"),
        (9, {1: "Données temps réel"}, "line 9: Nature must be"),
        (9, {2: "25/03/2016"}, "line 9: Date must be a day"),
        (9, {2: "2016-02-30"}, "line 9: Date must be a day"),
        (9, {3: "24:00"}, "line 9: Heures must be a time"),
        (9, {3: "02:10"}, "line 9: Heures must be a time"),
        (10, {4: "1x3"}, "line 10: Consommation must be a number"),
        (10, {4: "1 300"}, "line 10: Consommation must be a number"),
        (10, {4: "NaN"}, "line 10: Consommation must be a number"),
        (11, {4: "1300"}, "line 11: Consommation has a reading between two half-hours"),
        (10, {3: "01:30"}, "line 10: another reading of a half-hour that stands above; .* 48"),
    ],
)  # fmt: skip
def test_what_is_not_as_rte_writes_it_is_refused_with_its_line(made, line, cells, message):
    lines = made.rte_lines()
    row = lines[line - 1].split("\t")
    for place, text in cells.items():
        row[place] = text
    lines[line - 1] = "\t".join(row)
    refused(made, lines, message)


@pytest.mark.parametrize("perimeter", ["France", "Alsace"])
def test_a_file_of_no_region_is_refused(made, perimeter):
    refused(made, made.rte_lines(perimeter=perimeter), f"line 2: '{perimeter}' is none of the 12 regions")
