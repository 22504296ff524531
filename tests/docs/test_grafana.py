"""docs/grafana.json asks for metrics that `optstream ui` tells, by their labels, and for each of them."""

import json
import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tasks.pages.metrics import HELP, metrics_text
from tasks.pages.snapshot import RunStep, StreamRun
from tests.tasks.pages.snapshots import AT, settings, snapshot

__all__ = ["settings", "snapshot"]
DASHBOARD = json.loads((Path(__file__).parents[2] / "docs/grafana.json").read_text())
ASKED = re.compile(r"(optstream_[a-z_]+)(?:\{([^}]*)\})?")


def expressions():
    found = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    return found + [
        one["query"]["query"] for one in DASHBOARD["templating"]["list"] if isinstance(one["query"], dict)
    ]


def test_every_metric_is_shown_and_no_other_asked_for():
    assert {name for text in expressions() for name, _ in ASKED.findall(text)} == set(HELP)


def test_labels_and_legends_are_those_that_a_stream_has(snapshot):
    run = StreamRun("a", "Completed", AT, AT, (RunStep("draw", AT, AT),))
    text = metrics_text([snapshot(runs=(run,))], AT).decode()
    known = {
        family.name: {label for sample in family.samples for label in sample.labels}
        for family in text_string_to_metric_families(text)
    }
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            ((name, chosen),) = ASKED.findall(target["expr"])
            labels = set(re.findall(r"(\w+)[!=]", chosen)) | set(
                re.findall(r"\{\{(\w+)\}\}", target["legendFormat"])
            )
            assert labels <= known[name], target
