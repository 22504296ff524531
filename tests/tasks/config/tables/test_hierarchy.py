"""`[hierarchy]`: from a table or a file, with names, places and areas."""

import json
from datetime import date

import polars as pl
import pytest

from optstream.catalogue.about import NodeFacts
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
        ("tree.csv", "node,parent\nFR,\nA,FR\na,FR\n", "'A', 'a' differ by case, spaces or the form"),
        ("tree.csv", "node,parent\nFR,\nA1,FR\nA 1,FR\n", "'A 1', 'A1' differ by case, spaces or the form"),
        ("tree.csv", "node,parent\nFR,\nA1,FR\nA\uff11,FR\n", "differ by case, spaces or the form"),
        ("tree.csv", "node,parent\nFR,\nA1,FR\nA\u11601,FR\n", "differ by case, spaces or the form"),
        ("tree.csv", "node,parent\nFR,\nA,FR\nB ,FR\n", "'B ' ends in a space: take it out"),
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


def test_names_and_places_are_carried_and_shape_no_release(load, tmp_path):
    """A configuration without names has the hash that it had, and names change no hash."""
    named, bare = load(), load((NAMES, ""))
    placed = load((NAMES, NAMES + "[hierarchy.places]\n84 = [45.5, 4]\n"))
    assert named.node_facts["84"] == NodeFacts(name="Auvergne-Rhône-Alpes")
    assert placed.node_facts["84"] == NodeFacts(name="Auvergne-Rhône-Alpes", latitude=45.5, longitude=4.0)
    assert bare.node_facts == {}
    assert named.configuration_hash == bare.configuration_hash == placed.configuration_hash
    old = load((NAMES, ""), ('restatement_share = "1/10"', 'restatement_share = "0"  '))
    assert old.configuration_hash == "2dc8cda554395093382d70811dd02894b29d567943e441b169b631bdb0332057"


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_of_the_hierarchy_may_have_names_and_places(load, tmp_path, ending):
    columns = {
        "node": ["FR", "01"],
        "parent": ["", "FR"],
        "name": [None, "Ain"],
        "note": ["", "seen by nobody"],
    }
    table = pl.DataFrame({**columns, "latitude": [None, 46.1], "longitude": [None, 5.3]})
    file = tmp_path / f"tree.{ending}"
    table.write_csv(file) if ending == "csv" else table.write_parquet(file)
    start, stop = EXAMPLE.index("[hierarchy.parents]"), EXAMPLE.index("[budget]")
    settings = load((EXAMPLE[start:stop], f'[hierarchy]\nfile = "tree.{ending}"\n'))
    assert settings.node_facts == {"01": NodeFacts(name="Ain", latitude=46.1, longitude=5.3)}


@pytest.mark.parametrize(
    ("added", "told"),
    [
        ('[hierarchy.names]\n85 = "nowhere"', "'85' has a name or a place, and is not a node"),
        (
            '[hierarchy.names]\n84 = "a\\nb"',
            "node '84': name: must be printable text of 1 to 100 characters",
        ),
        ('[hierarchy.names]\n84 = "\\u202eabc"', "name: must be printable text"),
        ('[hierarchy.names]\n84 = ""', "name: must be printable text"),
        ("[hierarchy.names]\n84 = 84", "hierarchy.names must be a table node ="),
        ("[hierarchy.places]\n84 = [95.0, 4.5]", "latitude: Input should be less than or equal to 90"),
        ("[hierarchy.places]\n84 = [nan, 4.5]", "latitude: Input should be a finite number"),
        ("[hierarchy.places]\n84 = [45.0]", "hierarchy.places must be a table node ="),
    ],
)
def test_an_unusable_name_or_place_is_told(refusal, added, told):
    assert told in refusal((NAMES, added + "\n"))


SQUARE = [[4.0004, 45], [5, 45], [5, 46], [4.0004, 45]]


def feature(node, coordinates, kind="Polygon", **more):
    return {
        "type": "Feature",
        "geometry": {"type": kind, "coordinates": coordinates},
        "properties": node,
        **more,
    }


def areas_of(tmp_path, *features):
    """A file of these features; the line that names it."""
    (tmp_path / "areas.geojson").write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    return NAMES.replace("[hierarchy.names]", '[hierarchy]\nareas = "areas.geojson"\n[hierarchy.names]')


def test_areas_are_carried_and_shape_no_release(load, tmp_path):
    named = areas_of(
        tmp_path,
        feature({"node": "84"}, [SQUARE, SQUARE]),
        feature(None, [[SQUARE], [SQUARE]], "MultiPolygon", id=11),
        feature({"node": "elsewhere"}, [SQUARE]),
    )
    settings = load((NAMES, named))
    ring = ((4.0, 45.0), (5.0, 45.0), (5.0, 46.0), (4.0, 45.0))
    assert settings.node_facts["84"] == NodeFacts(name="Auvergne-Rhône-Alpes", area=(ring, ring))
    assert settings.node_facts["11"].area == (ring, ring)
    assert settings.configuration_hash == load().configuration_hash


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (
            feature({"node": "84"}, [SQUARE[:2]]),
            "hierarchy.areas: area.0: Tuple should have at least 3 items",
        ),
        (feature({"node": "84"}, [[[0, 0], [1, 95], [2, 2]]]), "area.0.1.1: Input should be less"),
        (
            feature({"node": "84"}, [4.0, 45.0], "Point"),
            "hierarchy.areas must be a GeoJSON FeatureCollection",
        ),
        (
            feature({"node": "84"}, [SQUARE * 20_000]),
            "must have at most 20,000 corners; got 80,000: simplify it",
        ),
        ("no feature", "hierarchy.areas must be a GeoJSON FeatureCollection"),
    ],
)
def test_unusable_areas_are_told(refusal, tmp_path, found, told):
    assert told in refusal((NAMES, areas_of(tmp_path, found)))


def test_an_area_file_that_is_not_there_is_told(refusal, tmp_path):
    named = areas_of(tmp_path)
    (tmp_path / "areas.geojson").unlink()
    assert "hierarchy.areas must be a file of at most 32 MiB" in refusal((NAMES, named))
