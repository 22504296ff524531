"""How many readings of a region were clamped, absent or doubled. For the trusted zone alone."""

import json
import re
from contextlib import suppress
from dataclasses import dataclass
from datetime import date

from tasks.settings import Settings

_VERDICT = re.compile(r"[0-9]{8}T[0-9]{12}\.json")


@dataclass(frozen=True)
class Suspect:
    """Shares in [0, 1] of one region's rows of a day. clamped: beyond the public bounds, or infinite."""

    clamped: float
    absent: float
    doubled: float


def suspect_readings(settings: Settings, day: date) -> dict[str, Suspect]:
    """Of each region of the day, by the newest validation result of that day, in tree order.

    Empty where there is none, or one from before rows were counted. Regions without a row are left out.
    """
    folder, found = settings.validation_folder / settings.stream.name, dict[str, Suspect]()
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        named = [path for path in folder.glob(f"{day}-*.json") if _VERDICT.fullmatch(path.name[11:])]
        for row in json.loads(max(named).read_bytes())["metrics"]:
            if row.get("rows", 0):
                found[row["region"]] = Suspect(
                    (row["out_of_bounds"] + row["infinite"]) / row["rows"],
                    row["absent"] / row["rows"],
                    (row["duplicates"] + row.get("two_leaves", 0)) / row["rows"],
                )
    return found
