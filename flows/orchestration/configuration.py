"""The configuration of the run under way: loaded once, however many flows it calls."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from flows.orchestration.calls import bound
from tasks.config import Settings, load_settings

_LOADED: ContextVar[Settings | None] = ContextVar("settings", default=None)


@contextmanager
def configured(config: str, settings: Settings | None = None) -> Iterator[Settings]:
    """Yield the configuration of a file, to flows that are called inside as well; it is read once.

    settings: of a caller that has read it. Raises ConfigurationError as `load_settings`.
    """
    known = settings or _LOADED.get()
    if known is None or known.file != Path(config).absolute():
        known = load_settings(Path(config))
    with bound(_LOADED, known):
        yield known
