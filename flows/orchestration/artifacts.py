"""What the orchestrator's own pages show of a run: log lines, nodes, budget, link. Public facts only."""

from collections.abc import Sequence
from contextlib import suppress

from prefect import get_run_logger
from prefect.artifacts import create_link_artifact, create_markdown_artifact, create_table_artifact

from optstream.errors import PublicationError
from optstream.ledger import Ledger
from tasks.config import Settings
from tasks.release.day import Ended, Status
from tasks.release.records.outcomes import budget_of
from tasks.reports.one_day import day_in_markdown


def log_days(days: Sequence[Ended]) -> None:
    """Log how each day ended, in the words of its outcome, which hold no reading."""
    log = get_run_logger()
    for day in days:
        say = log.info if day.outcome.status.is_good else log.warning
        say("%s %s: %s", day.day, day.outcome.status.value, day.outcome.message)


def keep_artifacts(settings: Settings, ledger: Ledger, days: Sequence[Ended]) -> None:
    """Keep tables of days, nodes and budget; of the newest published file a link, and pictures."""
    stream = settings.stream.name
    released = [day for day in days if day.outcome.status is Status.PUBLISHED]
    create_table_artifact(
        key="optstream-days",
        table=[
            {
                "date": day.day.isoformat(),
                "status": day.outcome.status.value,
                "what happened": day.outcome.message,
                "file": day.outcome.file or "",
            }
            for day in days
        ],
        description=f"Days of stream {stream}",
    )
    if not released:
        return
    tree = settings.tree_of(max(day.day for day in released))
    create_table_artifact(
        key="optstream-nodes",
        table=[
            {
                "node": name,
                "level": int(depth),
                "parent": tree.nodes[parent] if parent >= 0 else "",
                "days released": len(released),
                "share of epsilon": str(settings.level_shares[depth]),
            }
            for name, parent, depth in zip(tree.nodes, tree.parents, tree.depths, strict=True)
        ],
        description=f"Nodes of stream {stream} released in this run",
    )
    budget = budget_of(settings, ledger, [day.day for day in released])
    create_table_artifact(
        key="optstream-budget",
        table=[
            {
                "window (steps)": budget.model.window_length,
                f"{budget.currency} granted": str(budget.grant),
                "spent by the worst window": f"{float(budget.spent):.9g}",
                "left": f"{float(budget.left):.3g}",
            }
        ],
        description=f"Privacy budget of {settings.privacy.population}, by the accountant",
    )
    # the table names all files: a link for each day of a month would take longer than its release
    newest = max(released, key=lambda day: day.day)
    if newest.outcome.file:
        link = (settings.published_folder / newest.outcome.file).as_uri()
        create_link_artifact(key="optstream-file", link=link, description=f"{stream}, {newest.day}")
    # read back from the published folder: a day that was withdrawn meanwhile is not drawn
    with suppress(PublicationError):
        drawn = day_in_markdown(settings.published_folder, newest.day)
        create_markdown_artifact(
            key="optstream-release", markdown=drawn, description=f"{stream}, {newest.day}"
        )
