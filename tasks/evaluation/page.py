"""docs/evaluation.md: made from results; what is written by hand lies in `prose` and `findings`."""

from pathlib import Path

from optstream.errors import ParameterError
from optstream.evaluation import EXPERIMENTS
from tasks.evaluation.findings import FINDINGS, check
from tasks.evaluation.means import Results
from tasks.evaluation.pictures import write_pictures
from tasks.evaluation.prose import NOTES, OPENING, READING
from tasks.evaluation.tables import markdown, table_of

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
    pictures = page.parent / "pictures" / page.stem
    drawn = write_pictures(results, pictures)
    claims = [
        [f"{finding.experiment}", finding.title, finding.verdict if holds else UNMET.strip()]
        for finding, holds, _ in checked
        if holds is not None
    ]
    parts = [OPENING.format(facts=_facts(results)), markdown(["", "asked", "found"], claims), "\n"]
    for experiment in EXPERIMENTS:
        number = experiment.number
        if number not in results.experiments():
            continue
        parts.append(f"\n## {number}. {experiment.title}\n\n{experiment.figures}. {NOTES[number]}\n")
        if number in drawn:
            place = drawn[number].relative_to(page.parent).as_posix()
            parts.append(f"\n![Experiment {number}: {experiment.title.lower()}]({place})\n")
        own = [one for one in checked if one[0].experiment == number and one[1] is not None]
        parts += [f"\n{'' if holds else UNMET}{sentence}\n" for _, holds, sentence in own]
        parts.append(f"\n{table_of(results, number)}\n")
    page.write_text("".join([*parts, "\n", READING]), encoding="utf-8")
    return unmet


def _facts(results: Results) -> str:
    facts = results.facts
    machine = facts["machine"]
    seconds = sum(facts["seconds"].values())
    return (
        f"Data: {facts['data']}; seed {facts['seed']}; code {facts['code']}; Python {machine['python']}, "
        f"numpy {machine['numpy']}, {machine['cores']} cores; {seconds / 60:,.0f} minutes of one process."
    )
