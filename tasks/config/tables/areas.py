"""Areas of nodes for the data users' map, from a GeoJSON file."""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

from optstream.catalogue.about import MOST_CORNERS
from optstream.catalogue.nodes import NodeFacts, Ring
from optstream.errors import ParameterError

LARGEST_FILE = 32 * 2**20
DECIMALS = 3
"""Of degrees: about a hundred metres, finer than a map of a page."""
UNUSABLE = (
    "must be a GeoJSON FeatureCollection of polygons, each with the node as its id or its property node"
)

NO_NODE = (
    "must have the area of at least one node: none of its features has a node as its id or its property "
    "node, written as in the hierarchy"
)


def read_areas(path: Path, nodes: Collection[str]) -> tuple[dict[str, tuple[Ring, ...]], list[str]]:
    """Return the area of each node that the file has, rings of corners (longitude, latitude) with those of
    holes, and what is wrong with it; other features are left out.
    """
    try:
        if not path.is_file() or path.stat().st_size > LARGEST_FILE:
            return {}, ["hierarchy.areas must be a file of at most 32 MiB"]
        document = json.loads(path.read_bytes())
        areas = {
            node: _rings(feature["geometry"])
            for feature in document["features"]
            if (node := _node_of(feature)) in nodes
        }
        n_corners = sum(len(ring) for area in areas.values() for ring in area)
        if n_corners > MOST_CORNERS:
            told = f"must have at most {MOST_CORNERS:,} corners; got {n_corners:,}: simplify it"
            return {}, [f"hierarchy.areas {told}"]
        for area in areas.values():
            NodeFacts(area=area)
    except ParameterError as error:
        return {}, [f"hierarchy.areas: {error}"]
    except (OSError, ArithmeticError, ValueError, LookupError, TypeError, AttributeError, RecursionError):
        return {}, [f"hierarchy.areas {UNUSABLE}"]
    if not areas:
        return {}, [f"hierarchy.areas {NO_NODE}"]
    return areas, []


def _node_of(feature: Any) -> str:
    named = feature.get("properties") or {}
    return str(named.get("node", feature.get("id", "")))


def _rings(geometry: Any) -> tuple[Ring, ...]:
    """All rings, closed or not, of one or of several polygons."""
    polygons = {"Polygon": [geometry["coordinates"]], "MultiPolygon": geometry["coordinates"]}
    return tuple(tuple(map(_corner, ring)) for polygon in polygons[geometry["type"]] for ring in polygon)


def _corner(corner: Any) -> tuple[float, float]:
    longitude, latitude = corner[:2]  # perhaps followed by a height
    return round(float(longitude), DECIMALS), round(float(latitude), DECIMALS)
