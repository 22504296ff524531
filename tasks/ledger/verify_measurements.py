"""Compare the stored measurements with what the ledger recorded of them. Nothing is changed."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from optstream.errors import LedgerError, ParameterError
from optstream.ledger import ReleaseOutline, ReleaseState
from optstream.privacy import worst_window
from optstream.stream import Measured, period_from
from tasks.config import Settings
from tasks.storage.private_files import NAMED, RAW, files_in, read_verified

NOT_DRAWN = (ReleaseState.RESERVED, ReleaseState.VOID)
Key = tuple[str, int]
"""Period and revision."""


def compare_measurements(settings: Settings, releases: dict[Key, ReleaseOutline]) -> Iterator[str]:
    """Every release that was drawn has its measurements, as recorded, and no others."""
    known: dict[Path, ReleaseOutline] = {}
    for (period, revision), release in releases.items():
        folder = settings.measurements_of(period_from(period), revision)
        known[folder] = release
        if release.state in NOT_DRAWN:
            continue
        try:
            data = read_verified(folder, release.measurements_hash)
            if revision and _measured_nothing(data, settings.model.window_length):
                yield (
                    f"{place_of(settings, period, revision)} measured nothing and took the place of an "
                    "earlier revision that did; withdraw it, and restate the day when its windows "
                    "have headroom"
                )
        except (LedgerError, OSError) as error:
            yield (
                f"{place_of(settings, period, revision)}: {error}; restore the measurements from a copy: "
                "they are the release"
            )
        yield from (
            f"{path}: no measurements of {place_of(settings, period, revision)}, which has others; destroy "
            "it, for a second draw tells more than what was charged"
            for path in _other_draws(folder, release)
        )
    for folder in files_in(settings.measurements_folder / settings.stream.name):
        if folder not in known:
            yield f"{folder}: belongs to no release of the ledger; move it away, or bring its ledger back"


def _measured_nothing(data: bytes, window_length: int) -> bool:
    """Whether stored measurements cost no window anything; False for those of another format."""
    with suppress(ParameterError):
        return not worst_window(Measured.from_bytes(data).spends, window_length).epsilon
    return False


def _other_draws(folder: Path, release: ReleaseOutline) -> Iterable[Path]:
    """Files that hold another draw than the recorded one; raw state and an owner's word hold none."""
    if not release.measurements_hash:
        return []
    own = release.measurements_hash[:NAMED]
    return (
        path
        for path in files_in(folder)
        if path.suffix not in (RAW, ".intact", ".raised")
        and not path.name.endswith(f"-{own}")
        # space that was held for a draw that never began
        and (path.suffix != ".drawing" or path.read_bytes().strip(b"\0"))
    )


def place_of(settings: Settings, period: str, revision: int) -> str:
    """How problems name a release."""
    return f"stream {settings.stream.name!r}, {period} revision {revision}"
