"""Input and published folders in object stores: reached, refusing what comes second, telling no times."""

from collections.abc import Iterator

from optstream.catalogue.backends import StoreUrl
from optstream.catalogue.backends.object_store import check_conditions
from optstream.errors import PublicationError
from optstream.storage.open import open_store
from tasks.config import Settings
from tasks.doctor.finding import Finding, note, warning, wrong


def stores(settings: Settings) -> Iterator[Finding]:
    """Findings about places that are URLs; the store itself says who may read what, and is not asked."""
    if isinstance(settings.input_folder, StoreUrl):
        yield from _input(settings.input_folder)
    if isinstance(settings.published_folder, StoreUrl):
        yield from _published(settings, settings.published_folder)


def _input(url: StoreUrl) -> Iterator[Finding]:
    try:
        open_store(url).list_folder()
    except OSError as error:
        yield warning(
            url, f"the input folder cannot be listed: {error.strerror}", "mend that; every day waits"
        )


def _published(settings: Settings, url: StoreUrl) -> Iterator[Finding]:
    try:
        check_conditions(open_store(url))
    except PublicationError as error:
        yield wrong(url, str(error), "name another place in published.folder")
    except OSError as error:
        yield warning(
            url,
            f"this user may not write here: {error.strerror}",
            "run the doctor as who runs the stream, and see the rights of its credentials",
        )
    if settings.published.not_before is None:
        yield note(
            url,
            "an object store tells its readers when each object was put, which follows from how long the "
            "night took",
            'set published.not_before, such as "06:00", so that a clock decides when',
        )
