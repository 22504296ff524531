"""Pages agree with what they describe: papers, findings, the dashboard's metrics, the notebook."""

import csv
import json
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from docs.generate.papers_page import DOCS, papers
from flows.web.poll import METRICS, metrics_text
from studies.evaluation.findings import FINDINGS
from tasks.pages.snapshot import RunStep, StreamRun
from tests.tasks.pages.conftest import AT, settings, snapshot

CHECKOUT = DOCS.parent
ENTRIES = [(paper["key"], entry) for paper in papers() for entry in paper["entry"]]


def test_what_is_named_is_there():
    known = {}
    for key, entry in ENTRIES:
        for path in entry.get("code", ()):
            assert (CHECKOUT / path).exists(), f"{key}, {entry['at']}: {path}"
        for test in entry.get("tests", ()):
            path, name = test.split("::")
            if path not in known:
                text = (CHECKOUT / path).read_text(encoding="utf-8")
                known[path] = set(re.findall(r"^ *def (test_\w+)", text, re.M))
            assert name in known[path], f"{key}, {entry['at']}: {test}"


def rows_of(name: str) -> list[list[str]]:
    with (DOCS / f"research/tables/{name}.csv").open(encoding="utf-8", newline="") as lines:
        return list(csv.reader(lines))[1:]


def test_the_page_lists_the_findings_that_are_checked():
    listed = {tuple(row) for row in rows_of("findings")}
    assert {(str(number), asked, found) for number, asked, found, _ in FINDINGS} <= listed


@pytest.mark.parametrize(("section", "ours"), [(1, "OptStream ES"), (4, "OptStream ES, no optimisation")])
def test_tables_say_what_the_findings_say(section, ours):
    rows = {
        name: [float(one.replace(",", "")) for one in figures]
        for name, *figures in rows_of(f"experiment-{section}")
    }
    laplace = rows["Laplace"]
    assert [one < other for one, other in zip(rows[ours], laplace, strict=True)] == [False, False, True, True]


__all__ = ["settings", "snapshot"]
DASHBOARD = json.loads((Path(__file__).parents[2] / "docs/grafana.json").read_text())
ASKED = re.compile(r"(optstream_[a-z_]+)(?:\{([^}]*)\})?")


def test_every_metric_is_shown_and_no_other_asked_for():
    asked = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    queries = [one["query"] for one in DASHBOARD["templating"]["list"]]
    asked += [query["query"] for query in queries if isinstance(query, dict)]
    found = {name for text in asked for name, _ in ASKED.findall(text)}
    assert found == {f"optstream_{name}" for name in METRICS}


def test_labels_and_legends_are_those_that_a_stream_has(snapshot):
    run = StreamRun("a", "Completed", AT, AT, (RunStep("draw", AT, AT),))
    known = {
        family.name: {label for sample in family.samples for label in sample.labels}
        for family in text_string_to_metric_families(metrics_text([snapshot(runs=(run,))], AT).decode())
    }
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            ((name, chosen),) = ASKED.findall(target["expr"])
            labels = set(re.findall(r"(\w+)[!=]", chosen)) | set(
                re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])
            )
            assert labels <= known[name], target


CELLS = json.loads((Path(__file__).parents[2] / "docs/library.ipynb").read_text(encoding="utf-8"))["cells"]


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
