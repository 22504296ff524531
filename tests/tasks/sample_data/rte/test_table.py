"""The text of a file of RTE's: what is read, and what is refused on which line."""

import random
from datetime import date, datetime, timedelta

import polars as pl
import pytest

from optstream.errors import DumpError
from tasks.operate.rte import REGION_CODES, parse
from tasks.operate.simulate import FRENCH_REGIONS

FIRST = date(2016, 3, 25)
SPELT = {
    "Ile-de-France": "11", "PACA": "93", "Grand-Est": "44", "Pays-de-la-Loire": "52",
    "Centre-Val de Loire": "24", "Auvergne-Rhone-Alpes": "84",
}  # fmt: skip


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


def test_encodings_ends_of_lines_and_a_lost_footer_change_nothing(made):
    lines = made.rte_lines()
    _, rows = parse(made.encoded(lines))
    for same in (
        "\n".join(lines).encode(),
        "\n".join(lines).encode("utf-8-sig"),
        "\r\n".join(lines).encode("latin-1"),
        made.encoded(lines[:-3]),
        made.encoded([*lines[:-3], lines[-3] + "\t\t", "\t"]),
        made.encoded([line.replace("\t", " \t") for line in lines]),
        made.encoded([line + "12\t7" if line.startswith("Auv") else line for line in lines]),
    ):
        region, again = parse(same)
        assert region == "84"
        assert again.equals(rows)


def test_columns_are_known_by_name_in_any_order_and_vintage(made):
    lines = made.rte_lines()
    cells = [line.split("\t")[:13] for line in lines[:-3]]
    later = [
        "Stockage batterie",
        "Eolien offshore",
        "TCO Solaire (%)",
        "Flux physiques de Bretagne vers PACA",
    ]
    moved = [
        [*row[5:], *(later if number == 0 else ["ND"] * 4), *row[4::-1]] for number, row in enumerate(cells)
    ]
    _, rows = parse(made.encoded(["\t".join(row) for row in moved]))
    assert rows.equals(parse(made.encoded(lines))[1])


@pytest.mark.parametrize("word", ["ND", "-", "DC", "", " "])
def test_a_cell_without_a_reading_is_null(made, word):
    lines = made.rte_lines()
    lines[5] = made.row_of("Auvergne-Rhône-Alpes", FIRST, "01:00", word)
    _, rows = parse(made.encoded(lines))
    assert rows["load_mw"].null_count() == 1
    assert rows.filter(pl.col("load_mw").is_null())["timestamp"].item() == datetime(2016, 3, 25, 1)


@pytest.mark.parametrize(("text", "value"), [("812,5", 812.5), ("812.25", 812.25), ("-3", -3.0), ("0", 0.0)])
def test_decimals_have_a_comma_or_a_point(made, text, value):
    lines = made.rte_lines()
    lines[1] = made.row_of("Auvergne-Rhône-Alpes", FIRST, "00:00", text)
    assert parse(made.encoded(lines))[1]["load_mw"][0] == value


def test_rows_may_come_in_any_order_and_repeat_each_other(made):
    lines = made.rte_lines()
    rows = lines[1:-3]
    random.Random(1).shuffle(rows)
    _, found = parse(made.encoded([lines[0], *rows, *rows[:50], *lines[-3:]]))
    assert found.drop("line").equals(parse(made.encoded(lines))[1].drop("line"))


@pytest.mark.parametrize(
    ("perimeter", "code"),
    [*SPELT.items(), *((region.name, code) for code, region in FRENCH_REGIONS.items())],
)
def test_every_region_has_its_code(made, perimeter, code):
    assert parse(made.encoded(made.rte_lines(n_days=1, perimeter=perimeter)))[0] == code
    assert set(REGION_CODES.values()) == set(FRENCH_REGIONS)


@pytest.mark.parametrize(
    ("line", "cells", "message"),
    [
        (1, {4: "Conso"}, "line 1: 'Conso' is not a column"),
        (1, {5: "Prévision J-1"}, "line 1: 'Prévision J-1' is a column of the national file"),
        (1, {5: "Ech. comm. Suisse"}, "line 1: .* national file"),
        (1, {4: "Eolien"}, "line 1: the header row lacks the column Consommation"),
        (1, {5: "Date"}, "line 1: the header row must name each column once"),
        (1, {5: ""}, "line 1: '' is not a column"),
        (2, {0: "France"}, "line 2: this is the national file"),
        (2, {0: "Alsace"}, "line 2: 'Alsace' is none of the 12 regions"),
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
        (12, {0: "x" * 10_001}, "line 12: longer than 10000 bytes"),
    ],
)  # fmt: skip
def test_what_is_not_as_rte_writes_it_is_refused_with_its_line(made, line, cells, message):
    lines = made.rte_lines()
    row = lines[line - 1].split("\t")
    for place, text in cells.items():
        row[place] = text
    lines[line - 1] = "\t".join(row)
    refused(made, lines, message)


def test_a_refusal_says_no_reading(made):
    lines = made.rte_lines()
    lines[9] = made.row_of("Auvergne-Rhône-Alpes", FIRST, "02:00", "4711!")
    with pytest.raises(DumpError) as caught:
        parse(made.encoded(lines))
    assert "4711" not in str(caught.value)


def test_the_first_wrong_line_is_named(made):
    lines = made.rte_lines()
    lines[30] = made.row_of("Auvergne-Rhône-Alpes", "soon", "07:15", "")
    lines[20] = made.row_of("Auvergne-Rhône-Alpes", FIRST, "04:45", "seven")
    refused(made, lines, "line 21: Consommation")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda lines: lines[:1], "line 1: no row follows"),
        (lambda lines: [], "line 1: the header row lacks"),
        (lambda lines: lines[1:], "line 1: 'Auvergne-Rhône-Alpes' is not a column"),
        (
            lambda lines: ["", "", *lines[:2], "RTE changed", *lines[2:]],
            "line 5: a row must have .* 13 cells",
        ),
        (lambda lines: [*lines[:50], lines[50][:60]], "line 51: a row must have"),
        (lambda lines: [line.replace("\t", ";") for line in lines], "line 1: .* is not a column"),
        (lambda lines: [*lines[:-3], "footer"], "line 386: a row must have"),
        (lambda lines: ["\xd0\xcf\x11\xe0" + lines[0], *lines[1:]], "line 1: this is a workbook"),
        (lambda lines: [*lines, *[""] * 1_000_000], "line 1000000: longer"),
        (lambda lines: ["x\t" * 6_000, *lines], "line 1: longer than 10000 bytes"),
    ],
)
def test_other_texts_are_refused(made, change, message):
    refused(made, change(made.rte_lines()), message)
