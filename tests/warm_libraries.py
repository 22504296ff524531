"""Work that a parent of forks does first, so that no fork compiles or imports it again."""

import re
import tempfile
from datetime import timedelta


def warm_libraries() -> None:
    """Judge, open a ledger and read the pages' templates. Begins none of polars' threads."""
    import dp_accounting.pld.privacy_loss_distribution  # noqa: F401
    import great_expectations as gx
    import pandas

    from data_contracts.judge import _batches, page_of
    from optstream.catalogue import metadata, statement
    from optstream.ledger import open_ledger
    from tasks.pages import render

    # the library imports and compiles much only when it first judges
    kept_in_range = gx.expectations.ExpectColumnValuesToBeBetween(column="a", min_value=0)
    batch = _batches().get_batch({"dataframe": pandas.DataFrame({"a": [0]})})
    result = batch.validate(
        gx.ExpectationSuite(name="warm", expectations=[kept_in_range]), result_format="BOOLEAN_ONLY"
    )
    page_of(result, ())
    statement._sentences()
    with tempfile.TemporaryDirectory() as folder:
        open_ledger(f"sqlite:///{folder}/ledger.sqlite").close()
    for environment in (render._environment(), metadata._environment()):
        for template in environment.list_templates(filter_func=re.compile(r".*\.\w+\.jinja").match):
            environment.get_template(template)


def plan_few_days() -> None:
    """In this process, plan for days where a month and a year are planned for."""
    from optstream.stream import days_from
    from tasks.release import mechanism

    mechanism.HORIZONS = (2, 5)
    mechanism.days_from = lambda first, _: days_from(first, first + timedelta(days=9))
