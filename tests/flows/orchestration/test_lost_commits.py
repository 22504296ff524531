"""One connection to PostgreSQL that is cut at a COMMIT costs a look one hour at most, and never the look."""

from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import Engine, create_engine, event, text

from flows.orchestration import release
from flows.orchestration.nightly import nightly
from optstream.errors import OptStreamError
from optstream.ledger import open_ledger
from optstream.stream.period import day_of
from tasks.config import load_settings
from tasks.monitor.facts import last_ended
from tasks.operate.simulate import simulate
from tests.faults.world import configured

pytestmark = [pytest.mark.server, pytest.mark.nightly]
HOURS = 3


def stream(folder):
    """A stream by the hour whose last hours have dumps."""
    folder.mkdir()
    text = configured(mechanism="PeGaSus").replace('step = "1h"', 'step = "1h"\nperiod = "hour"')
    text = text.replace("two-regions", folder.name)
    file = folder / "optstream.toml"
    file.write_text(text)
    calendar = load_settings(file).calendar
    last = last_ended(load_settings(file), datetime.now(UTC))
    hours = [calendar.after(last, -number) for number in range(HOURS - 1, -1, -1)]
    given = sorted({day_of(hour) for hour in hours})
    file.write_text(f"{text}[schedule]\ncatch_up_days = 2\n[watch]\nfirst_day = {given[0]}\n")
    settings = load_settings(file)
    days = [given[0] + timedelta(days=number) for number in range(len(given))]
    simulate(settings.input_folder, leaves=("84", "11"), calendar=calendar, days=days, seed=1)
    return file, hours


def look(file):
    """Look once; return how many hours the ledger has as published."""
    with suppress(OptStreamError):  # an hour is left
        nightly.fn(str(file))
    settings = load_settings(file)
    ledger = open_ledger(settings.ledger_url)
    found = [one.state.value for one in ledger.outlines(settings.stream.name)]
    ledger.close()
    return found.count("PUBLISHED"), len(found)


def test_a_connection_that_is_cut_at_any_commit_costs_one_hour_at_most(
    tmp_path, postgresql_cluster, monkeypatch, prefect_api
):
    monkeypatch.setattr(release, "PAUSES", (0.1, 0.1))
    count, cut_at = [0], [0]
    elsewhere = postgresql_cluster.new_url().replace("postgresql:", "postgresql+psycopg:")
    other = create_engine(elsewhere)

    def committing(connection):
        if connection.engine is other or not connection.get_execution_options().get("ledger_writes"):
            return
        count[0] += 1
        if count[0] == cut_at[0]:
            own = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
            with other.connect() as apart:
                apart.execute(text(f"SELECT pg_terminate_backend({own}, 5000)"))

    event.listen(Engine, "commit", committing)
    try:
        monkeypatch.setenv("OPTSTREAM_LEDGER_URL", postgresql_cluster.new_url())
        file, _ = stream(tmp_path / "whole")
        whole = look(file)
        n_commits = count[0]
        assert whole[0] == whole[1] >= HOURS
        for number in range(1, n_commits + 1, max(1, n_commits // 12)):
            monkeypatch.setenv("OPTSTREAM_LEDGER_URL", postgresql_cluster.new_url())
            file, _ = stream(tmp_path / f"cut-{number}")
            count[0], cut_at[0] = 0, number
            published, _ = look(file)
            assert published >= whole[0] - 1, number
            cut_at[0] = 0
            assert look(file)[0] >= whole[0] - 1, number
    finally:
        event.remove(Engine, "commit", committing)
        other.dispose()
