"""What an operator should hear of: a stream's calendar, its budget, and the alarms. Nothing is changed."""

from tasks.watch.alarm import Alarm, Kind, Severity
from tasks.watch.days import DayState, State
from tasks.watch.facts import Facts, look
from tasks.watch.view import StreamView, view_of, watch

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
