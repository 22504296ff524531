"""One file for each published mechanism, composed of the rooms below."""

from optstream.mechanisms.optstream import OptStream
from optstream.mechanisms.release import Release

__all__ = ["OptStream", "Release"]
