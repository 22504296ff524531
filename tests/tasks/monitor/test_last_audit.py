"""The last audit: what is kept of it, and the alarm of one that failed."""

from datetime import UTC, datetime

from studies.audit.run import keep_audit
from tasks.monitor.facts import last_audit
from tests.tasks.monitor.conftest import FIRST

EARLIER, LATER = datetime(2016, 5, 1, tzinfo=UTC), datetime(2016, 5, 2, tzinfo=UTC)


def test_the_newest_counts_whichever_was_kept_last(watched):
    assert last_audit(watched.settings) is None
    path = keep_audit(watched.settings, {"passed": True}, LATER)
    keep_audit(watched.settings, {"passed": False}, EARLIER)
    record = last_audit(watched.settings)
    assert (record.at, record.passed, record.same) == (LATER, True, True)
    assert path.stat().st_mode & 0o777 == 0o600
    path.write_text("{")
    assert last_audit(watched.settings).at == EARLIER


def test_one_that_failed_is_an_alarm_until_the_configuration_is_another(watched):
    watched.released(FIRST)
    watched.at("2016-06-02T12:00:00")
    keep_audit(watched.settings, {"passed": False}, LATER)
    assert watched.alarms() == [("audit", None, None)]
    watched.configure("n_samples = 10", "n_samples = 8")
    # points elsewhere: the windows over midnight would hold more of them, and the next day must wait
    assert watched.alarms() == [("budget", 2, None)]
    assert not last_audit(watched.settings).same
