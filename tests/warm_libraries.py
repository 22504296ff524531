"""What processes that others are forked from do first, so that no fork compiles or imports it anew."""

import tempfile


def warm_libraries() -> None:
    """Judge, open a ledger and read the pages' templates. Begins none of polars' threads."""
    import dp_accounting.pld.privacy_loss_distribution  # noqa: F401

    from data_contracts.judge import warm_up
    from optstream.ledger import open_ledger
    from tasks.pages.render import _environment

    warm_up()
    with tempfile.TemporaryDirectory() as folder:
        open_ledger(f"sqlite:///{folder}/ledger.sqlite").close()
    for template in _environment().list_templates(extensions=["jinja"]):
        _environment().get_template(template)
