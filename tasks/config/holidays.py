"""Public holidays of a country, by the `holidays` package: facts that everybody knows; reads no file."""

from collections.abc import Iterable
from datetime import date

import holidays

from optstream.errors import ParameterError


def public_holidays(country: str, years: Iterable[int]) -> tuple[date, ...]:
    """Those of these years, rising; raises ParameterError for a country, such as "FR", that is not known."""
    try:
        known = holidays.country_holidays(country, years=list(years))
    except NotImplementedError as error:
        raise ParameterError(
            f'country must be a code that the package holidays knows, such as "FR"; got {country!r}'
        ) from error
    return tuple(sorted(known))
