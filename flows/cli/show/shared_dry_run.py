"""How `optstream run --dry-run` shows several streams: shares and expected errors side by side."""

from collections.abc import Sequence
from textwrap import fill

from rich.markup import escape
from rich.table import Table

from flows.cli.console import Terminal, plain_table
from flows.cli.show.dry_run import WIDTH, granted, short_name
from tasks.planning.shared_dry_run import SharedBudget, products_document


def show_products(budgets: Sequence[SharedBudget], terminal: Terminal) -> None:
    """A table for each population, or the one document of `--json`."""
    terminal.document(products_document(budgets))
    if terminal.as_json:
        return
    terminal.say("a dry run; nothing is read, drawn or charged")
    for budget in budgets:
        terminal.say(f"\n{budget.population}: expected errors, each in the unit of its stream's readings")
        terminal.console.print(_errors(budget))
        for one in budget.products:
            for warning in one.found.warnings:
                terminal.say("\n" + fill(f"{one.found.stream}: {warning}", WIDTH))
        first = budget.products[0].found
        verdict = "they fit" if budget.fits else "they do not fit: the ledger will refuse days"
        terminal.say(
            f"\nany {first.model.window_length} steps lose at most {first.currency} "
            f"{float(budget.epsilon):.6g} by these plans together,\n"
            f"and may lose {granted(first, budget.grant)}: {verdict}"
        )


def _errors(budget: SharedBudget) -> Table:
    plan = f"{budget.products[0].found.currency} of its plan"
    table = plain_table("stream", "share", plan, "level", "nodes", "error", "typical size", n_texts=1)
    for one in budget.products:
        begins = [escape(one.found.stream), str(one.share), f"{float(one.found.epsilon):.6g}"]
        for level in one.found.periods[0].levels:
            figures = ["depends on the draw", ""]
            if level.expected is not None:
                size = level.expected.size
                figures = [f"{level.expected.error:.3g}", "" if size is None else f"{size:.3g}"]
            table.add_row(*begins, short_name(level), str(level.n_nodes), *figures)
            begins = ["", "", ""]
    return table
