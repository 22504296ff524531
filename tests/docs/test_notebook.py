"""The notebook runs from its first cell to its last, and shows what it says."""

import json
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[2] / "docs/library.ipynb"
CELLS = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]


@pytest.mark.slow
def test_the_notebook_runs(capsys):
    names: dict[str, object] = {}
    for cell in CELLS:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)  # the notebook is ours
    assert names["release"]._repr_html_().startswith("<p>Release of 4 nodes at 48 steps")
    assert len(names["second"].plot().layer) == 2  # with bands
    label, noise = capsys.readouterr().out.splitlines()
    assert "missing: 'west'" in label
    assert "nothing is released without noise" in noise


def test_the_notebook_keeps_no_outputs():
    assert {(cell.get("execution_count"), *cell.get("outputs", ())) for cell in CELLS} == {(None,)}
