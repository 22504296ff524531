"""What `optstream evaluate` does and shows: a progress bar over all trials, then where the results lie."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from flows.cli.console import Terminal
from optstream.errors import ParameterError
from optstream.evaluation import EXPERIMENTS, Experiment, unique_cells
from tasks.studies.evaluation.data import SIMULATED, read_study_data, simulated_study_data
from tasks.studies.evaluation.findings import FINDINGS
from tasks.studies.evaluation.means import Results
from tasks.studies.evaluation.page import write_page
from tasks.studies.evaluation.run import Progress as Told
from tasks.studies.evaluation.run import check_installed, evaluate
from tasks.studies.evaluation.store import Store, Terms


def chosen_experiments(only: Sequence[int], short: bool, trials: int | None) -> list[Experiment]:
    """Those whose numbers were asked for, or all of them; in their short form, or with fewer trials."""
    chosen = [one for one in EXPERIMENTS if not only or one.number in only]
    if short:
        chosen = [one.short() for one in chosen]
    return chosen if trials is None else [one.limited(trials) for one in chosen]


def evaluate_and_show(
    experiments: Sequence[Experiment],
    terminal: Terminal,
    *,
    data: str,
    into: Path,
    seed: int,
    processes: int,
    public: bool,
    page: Path | None = None,
) -> None:
    """Run what is missing, say where the results lie, write the page if one is asked for: beside it, in
    `pictures/evaluation`, its figures. Raises DumpError or ParameterError.
    """
    public = public or data == SIMULATED
    if page and not public:
        raise ParameterError("a page shows how far releases miss: declare the data public with --public")
    cells = unique_cells(experiments)
    check_installed(cells, page=page is not None)
    with terminal.step("read the data"):
        read = simulated_study_data(cells) if data == SIMULATED else read_study_data(Path(data), cells)
    name = data if data == SIMULATED else "public series"
    store = Store(into, Terms.of(read, name=name, seed=seed, public=public))
    with _progress(terminal) as told:
        frame = evaluate(experiments, read, store, processes=processes, progress=told)
    terminal.say(f"{len(experiments)} experiments, {frame.height:,} figures in {into / 'results.parquet'}")
    if not public:
        terminal.say(
            "real against private is raw data: the folder is its owner's alone; declare --public data"
        )
    if page:
        unmet = write_page(Results.read(into), page)
        terminal.say(f"page in {page}; {len(unmet)} of {len(FINDINGS)} findings do not hold in these results")
    terminal.document({"results": str(into), "experiments": [one.number for one in experiments]})


@contextmanager
def _progress(terminal: Terminal) -> Iterator[Told | None]:
    """A bar over all trials, where somebody watches."""
    if terminal.as_json or not terminal.console.is_terminal:
        yield None
        return
    columns = (TextColumn("trials"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=terminal.console, transient=True) as bar:
        shown = bar.add_task("trials", total=None)
        yield lambda done, total: bar.update(shown, completed=done, total=total)
