"""`[hierarchy]`: from a table or a file, with names, places and a margin."""

from datetime import date

import polars as pl
import pytest

from optstream.catalogue.about import NodeFacts
from tasks.config.templates import EXAMPLE, example_of

TREE = EXAMPLE[EXAMPLE.index("[hierarchy.parents]") : EXAMPLE.index("[budget]")]
TWO = {"node": ["FR", "84"], "parent": ["", "FR"]}
UNUSABLE = [
    ("node,parent\nFR,\nA,FR\nA,FR\n", "must name each node once"),
    ("node,parent\nFR,\nA,FR\na,FR\n", "'A', 'a' differ by case, spaces or the form"),
    ("node,parent\nFR,\nA1,FR\nA 1,FR\n", "'A 1', 'A1' differ by case, spaces or the form"),
    ("node,parent\nFR,\nA1,FR\nA\uff11,FR\n", "differ by case, spaces or the form"),
    ("node,parent\nFR,\nA1,FR\nA\u11601,FR\n", "differ by case, spaces or the form"),
    ("node,parent\nFR,\nA,FR\nB ,FR\n", "'B ' ends in a space: take it out"),
    ("node,up\nFR,\n", "must hold the columns node and parent"),
    ("node,parent\nFR,\n../x,FR\n", "must name nodes, which name folders, by letters"),
    *((f"{header}\nFR{commas}\n{commas}", "must have each column once")
      for header in ("node,parent,parent", "node,node,parent", "node,parent,name,name")
      for commas in ["," * header.count(",")]),
    *(({"node": codes, "parent": [None, codes[0]]}, "text or whole numbers")
      for codes in ([1.0, 2.0], [True, False], [date(2016, 1, 1), date(2016, 1, 2)])),
    *((TWO | facts, "true or a date")
      for facts in ({"name": [1.0, 2.0]}, {"name": [True, False]},
                    {"latitude": [True, False], "longitude": [False, True]},
                    {"latitude": [date(1970, 1, 5)] * 2, "longitude": [1.0, 2.0]})),
    (b"PAR1 secret PAR1", "must hold the columns node and parent"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "message"), UNUSABLE)
def test_an_unusable_hierarchy_file_is_reported(refusal, tmp_path, content, message):
    """So too where it would be read otherwise than it is written."""
    file = tmp_path / ("tree.csv" if isinstance(content, str) else "tree.parquet")
    if isinstance(content, dict):
        pl.DataFrame(content).write_parquet(file)
    else:
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
    said = refusal((TREE, f'[hierarchy]\nfile = "{file.name}"\n'))
    assert message in said
    assert "secret" not in said


def test_a_hierarchy_file_is_csv_or_parquet(refusal):
    assert "must end in .csv or .parquet" in refusal((TREE, '[hierarchy]\nfile = "tree.pickle"\n'))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_of_the_hierarchy_may_have_names_and_places(load, tmp_path, ending):
    columns = {"node": ["FR", "01"], "parent": ["", "FR"], "name": [None, "Ain"]}
    others = {"note": ["", "seen by nobody"], "latitude": [None, 46.1], "longitude": [None, 5.3]}
    table = pl.DataFrame(columns | others)
    file = tmp_path / f"tree.{ending}"
    table.write_csv(file) if ending == "csv" else table.write_parquet(file)
    settings = load((TREE, f'[hierarchy]\nfile = "tree.{ending}"\n'))
    assert settings.node_facts == {"01": NodeFacts(name="Ain", latitude=46.1, longitude=5.3)}
    assert settings.tree_of(date.min).leaves == ("01",)


@pytest.mark.parametrize("codes", [["01", "1"], [1, 2]])
def test_codes_are_text_or_whole_numbers(load, tmp_path, codes):
    pl.DataFrame({"node": codes, "parent": [None, codes[0]]}).write_parquet(tmp_path / "nodes.parquet")
    settings = load((TREE, '[hierarchy]\nfile = "nodes.parquet"\n'))
    assert settings.tree_of(date.min).nodes == tuple(str(code) for code in codes)


DAY = date(2016, 2, 1)
SECTORS = (
    '[hierarchy.margins]\nsector = ["industry", "households"]\n\n[budget]\nmargins = { sector = "1/4" }\n'
)
WITH_MARGIN = {
    "[budget]\n": SECTORS,
    'levels = ["1/2", "1/2"] ': 'levels = ["1/4", "1/4", "1/4"] ',
    '# region = "zone"  ': 'region = "region"\nmargin = "sector"\n# ',
}


@pytest.fixture
def loaded(load_text):
    def load(changes=WITH_MARGIN, mechanism="Laplace", more=None):
        return load_text(example_of(mechanism), *{**changes, **(more or {})}.items())

    return load


SOME = SECTORS.replace("\n[budget]", '\n[hierarchy.cells]\n53 = ["households"]\n[budget]')


def test_a_leaf_may_have_some_of_the_margins_nodes_alone(loaded):
    plain, whole, settings = loaded({}), loaded(), loaded(more={SECTORS: SOME})
    assert "margin" not in plain.describe_mechanism(DAY)
    tree = settings.tree_of(DAY)
    assert len(tree.leaves) == 23
    assert "53-industry" not in tree.nodes
    assert tree.children_of("53") == ("53-households",)
    assert len(tree.children_of("industry")) == 11
    assert len(tree.children_of("households")) == 12
    other = loaded(more={SECTORS: SECTORS.replace("households", "homes")})
    assert len({one.configuration_hash for one in (plain, whole, settings, other)}) == 4
    assert settings.dated_hierarchy.hashes != whole.dated_hierarchy.hashes
