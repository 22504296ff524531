"""How `optstream ledger show` looks on a terminal."""

from datetime import datetime
from fractions import Fraction
from math import floor

from rich.markup import escape
from rich.table import Table

from flows.cli.console import Terminal, plain_table
from optstream.privacy.horizon import HorizonLoss
from optstream.privacy.model import Currency
from tasks.ledger.horizon import Horizon
from tasks.ledger.show_pages import BudgetSummary, DayHeadroom, StreamPage
from tasks.reports.numbers import at_most


def show_book(
    pages: tuple[BudgetSummary, ...], horizons: tuple[Horizon, ...], changed: list[str], terminal: Terminal
) -> None:
    """A part for each privacy budget: its streams, its days, its windows, and its last month and year."""
    if terminal.as_json:
        return
    if not pages:
        terminal.say("the ledger has no stream yet")
    for page in pages:
        model = page.terms.model
        terminal.say(
            f"privacy budget {page.name}: "
            f"{model.in_words} in any window of {model.window_length} steps "
            f"({page.terms.calendar}; {model.windows} windows)"
        )
        for stream in page.streams:
            terminal.say(_stream(stream))
        if page.days:
            terminal.say("")
            terminal.console.print(_days(page))
        if page.windows:
            terminal.say("")
            terminal.console.print(_windows(page))
        if page.shared_words:
            terminal.say(f"by stream: {page.shared_words}")
        terminal.say(_free(page))
        for found in horizons:
            if found.grant == page.name:
                terminal.say(_horizon(found))
        terminal.say("")
    if changed:
        terminal.say(f"the ledger has another {', '.join(changed)} than the configuration: a run is refused")


DECIMALS: dict[Currency, int] = {"epsilon": 6, "rho": 9}
COMPOSED = {
    "draws": "exact composition of the noise that was drawn",
    "windows": "composition of whole periods, each with the whole epsilon of the windows that it takes",
    "plain": "the plain sum, which no composition that holds here is below",
    "rho": "the sum of rho, of zero-concentrated privacy",
}


def show_horizon(found: Horizon, terminal: Terminal) -> None:
    """Two lines: what the span loses at delta, and its plain sum."""
    span = f"{found.n_days} days, {found.first} to {found.last}"
    if found.loss is None:
        terminal.say(f"privacy budget {found.grant}, {span}: noise was compromised, so all is lost")
        return
    loss = found.loss
    terminal.say(
        f"privacy budget {found.grant}, {span}: all readings of one customer lose at most epsilon "
        f"{at_most(loss.epsilon)} at delta {float(found.delta):g}"
    )
    if loss.composed == "rho":
        terminal.say(f"{COMPOSED[loss.composed]}: {float(loss.plain):.6g}")
    else:
        terminal.say(f"{COMPOSED[loss.composed]}; plain sum, at delta 0: {at_most(loss.plain)}")


def _horizon(found: Horizon) -> str:
    """One line for a number of days up to the last release."""
    span = f"the {found.n_days} days to {found.last}"
    if found.loss is None:
        return f"{span}: noise was compromised, so all is lost"
    return (
        f"{span}: all readings of one customer lose at most epsilon {at_most(found.loss.epsilon)} "
        f"at delta {float(found.delta):g}; {plain_sum(found.loss)}"
    )


def _stream(page: StreamPage) -> str:
    counts = ", ".join(f"{count} {state.value.lower()}" for state, count in page.counts.items())
    terms = page.terms
    return (
        f"stream {terms.stream}: {counts or 'no releases'}; alpha {terms.model.alpha}, resolution "
        f"{terms.model.resolution}, unit {terms.model.unit}, {terms.calibration}, hierarchy "
        f"{terms.hierarchy_hash[:12]}"
    )


def _days(page: BudgetSummary) -> Table:
    table = plain_table("date", "released", "charged", "least left", "may be released", n_texts=5)
    for one in page.days:
        own = [
            (release, stream.terms.stream)
            for stream in page.streams
            for release in stream.releases
            if release.period == one.day.isoformat()
        ]
        several = len(page.streams) > 1
        told = [
            f"{release.state.value.lower()}{f' r{release.revision}' if release.revision else ''}"
            f"{f' ({stream})' if several else ''}"
            for release, stream in own
        ]
        charged = [f"{float(release.epsilon):.6g}" for release, _ in own]
        left = rounded_down(one.left, page.terms.model.currency)
        table.add_row(str(one.day), ", ".join(told), ", ".join(charged), left, _may(one))
    return table


def _may(one: DayHeadroom) -> str:
    if one.may is None:
        return ""
    return "yes" if one.may else escape(f"no: {one.because}")


def _windows(page: BudgetSummary) -> Table:
    table = plain_table("windows that begin between", "and", "have left", n_texts=3)
    for one in page.windows:
        first, last = _when(one.first_step, one.begin_first), _when(one.last_step, one.begin_last)
        table.add_row(first, last, rounded_down(one.left, page.terms.model.currency))
    return table


def _when(step: int, begin: datetime | None) -> str:
    return f"step {step}" if begin is None else clock(begin)


def _free(page: BudgetSummary) -> str:
    if page.free_from is None:
        return "nothing was ever charged: every window has all of it"
    where = _when(page.free_from, page.free_from_time)
    model = page.terms.model
    whole = model.in_words if model.delta else str(model.epsilon)
    return f"windows that begin at {where} or later have all of it, {whole}"


def clock(moment: datetime) -> str:
    """Local time to the minute, with its offset where the clock shows it twice."""
    text = moment.strftime("%Y-%m-%d %H:%M")
    twice = moment.tzinfo and moment.replace(fold=0).utcoffset() != moment.replace(fold=1).utcoffset()
    return text + moment.strftime("%z") if twice else text


def rounded_down(amount: Fraction | float, currency: Currency = "epsilon") -> str:
    """Six decimals, nine of rho, which is small; rounded down: what is left is never overstated."""
    if isinstance(amount, float):
        return "nothing: noise was compromised"
    n = DECIMALS[currency]
    return f"{floor(amount * 10**n) / 10**n:.{n}f}".rstrip("0").rstrip(".")


def plain_sum(loss: HorizonLoss) -> str:
    """The sum of all charges, in their own currency."""
    return f"rho {float(loss.plain):.6g}" if loss.composed == "rho" else f"plain sum {at_most(loss.plain)}"
