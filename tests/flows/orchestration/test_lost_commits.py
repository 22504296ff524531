"""One connection to PostgreSQL that is cut at a COMMIT costs a look one hour at most, and never the look."""

from contextlib import closing, suppress

import pytest
from sqlalchemy import Engine, create_engine, event, text

from flows.orchestration import release
from flows.orchestration.nightly import nightly
from optstream.errors import OptStreamError
from optstream.ledger import open_ledger
from tasks.config import load_settings
from tests.flows.served import stream_of_hours

pytestmark = [pytest.mark.server, pytest.mark.nightly]
N_HOURS = 3


def look(settings):
    """Look once; return how many hours the ledger has as published, and how many it has."""
    with suppress(OptStreamError):  # an hour is left
        nightly.fn(str(settings.file))
    with closing(open_ledger(load_settings(settings.file).ledger_url)) as ledger:
        found = [one.state.value for one in ledger.outlines(settings.stream.name)]
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
        settings, _ = stream_of_hours(tmp_path / "whole", N_HOURS)
        whole = look(settings)
        n_commits = count[0]
        assert whole[0] == whole[1] >= N_HOURS
        for number in range(1, n_commits + 1, max(1, n_commits // 12)):
            monkeypatch.setenv("OPTSTREAM_LEDGER_URL", postgresql_cluster.new_url())
            settings, _ = stream_of_hours(tmp_path / f"cut-{number}", N_HOURS)
            count[0], cut_at[0] = 0, number
            published, _ = look(settings)
            assert published >= whole[0] - 1, number
            cut_at[0] = 0
            assert look(settings)[0] >= whole[0] - 1, number
    finally:
        event.remove(Engine, "commit", committing)
        other.dispose()
