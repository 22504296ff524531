"""What an operator should hear of: a stream's calendar, its budget, and the alarms. Nothing is changed."""

from tasks.monitoring.alarms.alarm import Alarm, Kind, Severity
from tasks.monitoring.days import DayState, State
from tasks.monitoring.facts import Facts, look
from tasks.monitoring.view import StreamView, view_of, watch

__all__ = [
    "Alarm",
    "DayState",
    "Facts",
    "Kind",
    "Severity",
    "State",
    "StreamView",
    "look",
    "view_of",
    "watch",
]
