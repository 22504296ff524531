"""How `optstream run --dry-run` shows what it found."""

from fractions import Fraction
from textwrap import fill

from rich.markup import escape
from rich.table import Table

from flows.cli.console import Terminal, plain_table
from flows.cli.show.ledger_book import plain_sum
from tasks.planning.currencies import Currencies
from tasks.planning.preview import DryRun, Level, Period, dry_run_document
from tasks.reports.numbers import at_most

WIDTH = 80


def show_dry_run(found: DryRun, terminal: Terminal) -> None:
    """Tables for people, or the one document of `--json`."""
    if terminal.as_json:
        terminal.document(dry_run_document(found))
        return
    terminal.say(f"{found.stream}: a dry run; no reading is read, nothing is drawn or charged")
    for period in found.periods:
        terminal.say(f"\n{_days(period)}, {period.n_steps} steps; numbers in the unit of the readings")
        terminal.console.print(_costs(period, found.currency))
        if any(level.expected and level.expected.size is not None for level in period.levels):
            terminal.say("\nexpected error of a published value, beside the typical size of its node")
            terminal.console.print(_expected(period))
        if period.levels[0].band is None:
            terminal.say("\nhow noisy a published value is depends on what is drawn")
            continue
        terminal.say("\nstandard deviation of a published value, from noise alone")
        terminal.console.print(_bands(period))
        if not found.points_known:
            terminal.say("the draw chooses the points; these are for equally spaced ones")
    if found.suggestions:
        terminal.say(
            f"\nsuggested n_samples, by a bound on the mean error of {found.model.window_length} steps"
        )
        terminal.console.print(_suggestions(found))
    for warning in found.warnings:
        terminal.say("\n" + fill(warning, WIDTH))
    verdict = "fits" if found.fits else "does not fit: the ledger will refuse days"
    terminal.say(
        f"\nany {found.model.window_length} steps lose at most {found.currency} {float(found.epsilon):.6g} "
        f"by this plan, and may lose {granted(found, found.grant)}: it {verdict}"
    )
    kept = found.kept_back
    shares = (
        f"first releases have {1 - kept}, restatements {kept} of it: budget.restatement_share"
        if kept
        else "budget.restatement_share is 0: no day can be measured again"
    )
    terminal.say(fill(shares, WIDTH))
    if found.currencies is not None:
        _show_currencies(found, found.currencies, terminal)
    for n_days, loss in found.horizons:
        terminal.say(
            f"a customer's {n_days} days: epsilon up to {at_most(loss.epsilon)} "
            f"at delta {float(loss.delta):g}; {plain_sum(loss)}"
        )


def granted(found: DryRun, grant: Fraction) -> str:
    """Return what any window may lose, in the currency of a plan."""
    return found.model.in_words if found.currency == "rho" else f"{float(grant):g}"


def _show_currencies(found: DryRun, told: Currencies, terminal: Terminal) -> None:
    """The noise of a measured step under either currency, and which has less."""
    epsilon = f"epsilon {float(found.model.epsilon):g}"
    delta = float(told.delta)
    terminal.say("\nstandard deviation of a step's own noise at each level, by currency")
    table = plain_table("level", epsilon, f"{epsilon}, delta {delta:g}", n_texts=1)
    names = {level.level: short_name(level) for level in found.periods[0].levels}
    for one in told.levels:
        table.add_row(names[one.level], f"{one.epsilon:.4g}", f"{one.rho:.4g}")
    terminal.console.print(table)
    how = "" if found.currency == "rho" else f': [mechanism] name = "Gaussian", [privacy] delta = "{delta:g}"'
    less = {
        "epsilon": "Laplace noise, in epsilon alone, has less",
        "rho": f"Gaussian noise has less{how}",
        None: "each has less at some level",
    }
    terminal.say(less[told.better])


def _days(period: Period) -> str:
    others = len(period.days) - 1
    return f"{period.days[0]}" + (f" and {others} more like it" if others else "")


def _costs(period: Period, currency: str) -> Table:
    """A line for each noise; a level's last line is its plan in any window, repeated without end."""
    table = plain_table("level", "stage", "noise on", currency, "scale", "deviation", n_texts=3)
    for level in period.levels:
        for stage in level.stages:
            price = f"{float(stage.epsilon):.6g}"
            for noise in stage.noise:
                numbers = (f"{noise.scale:.6g}", f"{noise.deviation:.6g}")
                of = noise.of if noise.joint_over == 1 else f"{noise.of}, joint over {noise.joint_over}"
                table.add_row(short_name(level), escape(stage.name), of, price, *numbers)
                price = ""
        note = "all, in any window" if level.stages else "derived"
        table.add_row(short_name(level), note, "", f"{float(level.epsilon):.6g}", "", "")
    table.add_row("all", "this day alone", "", f"{float(period.epsilon):.6g}", "", "")
    return table


def short_name(level: Level) -> str:
    """Return the level's number, or the margin's name."""
    return escape(level.name.removeprefix("level "))


def _expected(period: Period) -> Table:
    table = plain_table("level", "nodes", "error", "typical size", n_texts=1)
    for level in period.levels:
        found = level.expected
        figures = [f"{one:.3g}" for one in (found.error, found.size) if one is not None] if found else []
        table.add_row(short_name(level), str(level.n_nodes), *figures)
    return table


def _bands(period: Period) -> Table:
    table = plain_table("level", "nodes", "typical", "least", "most", n_texts=1)
    for level in period.levels:
        assert level.band is not None
        figures = (level.band.typical, level.band.least, level.band.most)
        table.add_row(short_name(level), str(level.n_nodes), *(f"{value:.6g}" for value in figures))
    return table


def _suggestions(found: DryRun) -> Table:
    table = plain_table("level", "n_samples", "bound", "bound as configured", n_texts=1)
    for suggestion in found.suggestions:
        level = "all" if suggestion.level is None else str(suggestion.level)
        bounds = (f"{suggestion.error:.6g}", f"{suggestion.error_as_configured:.6g}")
        table.add_row(level, str(suggestion.n_samples), *bounds)
    return table
