"""The page docs/evaluation.md is made from results here; what is written by hand lies in `page.md`."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl

from optstream.errors import ParameterError
from studies.evaluation import EXPERIMENTS, Experiment
from studies.evaluation.contenders import RAW
from studies.papers.findings import FINDINGS, NOTES, OPENING, READING, check, filled
from studies.papers.means import Results
from studies.papers.pictures import write_pictures
from studies.papers.tables import TABLES, markdown

UNMET = "**Not so in these results:** "


def write_page(results: Results, page: Path, *, strict: bool = False) -> list[str]:
    """Write the page, and its figures into `pictures/<name of the page>` beside it; return the findings that
    do not hold in these results: the page says so beside each.

    strict: refuse to write a page with such a finding. Raises ParameterError for that, and for results of
    data that were not declared public: errors against private values never leave the trusted zone.
    """
    if not results.facts["public"]:
        raise ParameterError(
            "these results are of data that were not declared public: no page is made of them"
        )
    checked = [(finding, *check(results, finding)) for finding in FINDINGS]
    unmet = [sentence for _, holds, sentence in checked if holds is False]
    if unmet and strict:
        raise ParameterError(f"{len(unmet)} findings do not hold in these results; the first: {unmet[0]}")
    drawn = write_pictures(results, page.parent / "pictures" / page.stem)
    claims = [
        [str(finding.experiment), finding.title, finding.verdict if holds else "not so in these results"]
        for finding, holds, _ in checked
        if holds is not None
    ]
    parts = [filled(OPENING, {"facts": _facts(results)}), markdown(["", "asked", "found"], claims), "\n"]
    for experiment in EXPERIMENTS:
        number = experiment.number
        if number in results.experiments():
            own = [(holds, sentence) for finding, holds, sentence in checked if finding.experiment == number]
            picture = drawn[number].relative_to(page.parent).as_posix() if number in drawn else None
            parts.append(_section(results, experiment, picture, own))
    page.write_text("".join([*parts, "\n", READING]), encoding="utf-8")
    return unmet


def _section(
    results: Results, experiment: Experiment, picture: str | None, own: Sequence[tuple[bool | None, str]]
) -> str:
    """One experiment: what it is, its figure, what was found, its table."""
    number, title = experiment.number, experiment.title
    ran = results.means.filter(experiment=number)
    spans = ", ".join(ran["span"].unique(maintain_order=True))
    paragraphs = [
        f"## {number}. {title}",
        f"{experiment.figures}. {NOTES[number]} {_trials(ran)}; {spans}.",
        *([] if picture is None else [f"![Experiment {number}: {title.lower()}]({picture})"]),
        *(sentence if holds else UNMET + sentence for holds, sentence in own if holds is not None),
        TABLES[number](results),
    ]
    return "\n" + "\n\n".join(paragraphs) + "\n"


def _trials(ran: pl.DataFrame) -> str:
    """How many, and of whom fewer; the real stream needs only one."""
    noisy = ran.filter(pl.col("mechanism") != RAW)
    most = noisy.select(pl.col("trials").max()).item()
    fewer = noisy.group_by("mechanism", maintain_order=True).agg(pl.col("trials").min())
    named = [f"{count} of {name}" for name, count in fewer.iter_rows() if count != most]
    return f"{most} trial{'' if most == 1 else 's'}" + (f" ({', '.join(named)})" if named else "")


def _facts(results: Results) -> str:
    facts = results.facts
    machine = facts["machine"]
    seconds = sum(facts["seconds"].values())
    return (
        f"Data: {facts['data']}; seed {facts['seed']}; code {facts['code']}; Python {machine['python']}, "
        f"numpy {machine['numpy']}, {machine['cores']} cores; {seconds / 60:,.0f} minutes of one process."
    )
