"""`[hierarchy]`: from a table or a file, with names, places and areas."""

from datetime import date

import polars as pl
import pytest

from tasks.config.example import EXAMPLE


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_hierarchy_may_come_from_a_file(load, tmp_path, ending):
    table = pl.DataFrame({"node": ["FR", "01", "02"], "parent": ["", "FR", "FR"]})
    table.write_csv(tmp_path / "tree.csv") if ending == "csv" else table.write_parquet(
        tmp_path / "tree.parquet"
    )
    start, stop = EXAMPLE.index("[hierarchy.parents]"), EXAMPLE.index("[budget]")
    settings = load((EXAMPLE[start:stop], f'[hierarchy]\nfile = "tree.{ending}"\n'))
    assert settings.tree_of(date.min).leaves == ("01", "02")


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("tree.csv", "node,parent\nFR,\nA,FR\nA,FR\n", "must name each node once"),
        ("tree.csv", "node,up\nFR,\n", "must hold the columns node and parent"),
        ("tree.csv", "node,parent\nFR,\n../x,FR\n", "must name nodes, which name folders, by letters"),
        ("tree.parquet", "PAR1 secret PAR1", "must hold the columns node and parent"),
        ("tree.pickle", "", "must end in .csv or .parquet"),
    ],
)
def test_an_unusable_hierarchy_file_is_told(refusal, tmp_path, name, content, told):
    (tmp_path / name).write_text(content)
    start, stop = EXAMPLE.index("[hierarchy.parents]"), EXAMPLE.index("[budget]")
    assert told in refusal((EXAMPLE[start:stop], f'[hierarchy]\nfile = "{name}"\n'))


NAMES = EXAMPLE[EXAMPLE.index("[hierarchy.names]") : EXAMPLE.index("[budget]")]


@pytest.mark.parametrize(
    ("added", "told"),
    [
        ('[hierarchy.names]\n85 = "nowhere"', "'85' has a name or a place, and is not a node"),
        (
            '[hierarchy.names]\n84 = "a\\nb"',
            "of node '84' name must be printable text of 1 to 100 characters",
        ),
        ('[hierarchy.names]\n84 = "\\u202eabc"', "name must be printable text"),
        ('[hierarchy.names]\n84 = ""', "name must be printable text"),
        ("[hierarchy.names]\n84 = 84", "hierarchy.names must be a table node ="),
        ("[hierarchy.places]\n84 = [95.0, 4.5]", "latitude must be in [-90, 90]"),
        ("[hierarchy.places]\n84 = [nan, 4.5]", "latitude must be in [-90, 90]"),
        ("[hierarchy.places]\n84 = [45.0]", "hierarchy.places must be a table node ="),
    ],
)
def test_an_unusable_name_or_place_is_told(refusal, added, told):
    assert told in refusal((NAMES, added + "\n"))
