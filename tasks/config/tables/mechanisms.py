"""The `[mechanism]` table: which mechanism, and its own keys, with their legal ranges as errors say them."""

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from optstream import mechanisms
from optstream.errors import ParameterError
from optstream.privacy import PrivacyModel
from tasks.config.tables.base import Section
from tasks.config.tables.fields import Number

SHARE = 'a share between 0 and 1, such as "1/2"'
GAIN = Field(description="a number in [0, 1]; the three gains add up to 1")
AMOUNT = Field(description="a number greater than 0")
MOST_HOLIDAYS = 10_000
NOISE = '"joint" or "laplace"'
PROXY = "the table that `python -m studies learn-proxy` prints: learned_from, a text, and medians"


class Mechanism(Section):
    """A mechanism's own keys, called as its parameters are, which check the legal range that the description
    says. tables: what of the file is for it and not for others.
    """

    tables: ClassVar[tuple[str, ...]] = ()

    name: str

    @classmethod
    def variants(cls, numbers: Sequence[int]) -> Iterator[tuple[str, dict[str, dict[str, Any]]]]:
        """What is worth trying: how each is called, its keys by table. numbers: of samples or the like."""
        yield "", {}

    @property
    def kind(self) -> Any:
        """The mechanism's class, which says what is true of it (`optstream.mechanisms.base`); loads it."""
        return getattr(mechanisms, self.name)

    @property
    def takes_margin(self) -> bool:
        """Whether it may stand on a hierarchy with a margin."""
        return bool(self.kind.takes_margin)

    def check(self, model: PrivacyModel) -> None:
        """Raise ParameterError for a key outside its range, or that does not fit another or the model."""
        self.kind(model, **self.parameters)

    def holidays_around(self, day: date) -> tuple[date, ...]:
        """The public holidays that it was told of, and those of its country in the years around a day."""
        return ()

    @property
    def parameters(self) -> dict[str, Any]:
        """The keys that were given or have a default, without the name."""
        given = {key: getattr(self, key) for key in type(self).model_fields if key != "name"}
        return {key: value for key, value in given.items() if value is not None}


class OptStream(Mechanism):
    tables: ClassVar[tuple[str, ...]] = ("sampling", "features", "stages")

    weights: Literal["variance", "paper"] = Field("variance", description='"variance" or "paper"')
    noise: Literal["joint", "laplace"] | None = Field(None, description=NOISE)

    @classmethod
    def variants(cls, numbers: Sequence[int]) -> Iterator[tuple[str, dict[str, dict[str, Any]]]]:
        """As any mechanism's."""
        for number in numbers:
            yield f", {number} samples", {"sampling": {"method": "equally_spaced", "n_samples": number}}

    def check(self, model: PrivacyModel) -> None:
        """Do nothing: what it is made with stands in other tables."""


class Plain(Mechanism):
    """A mechanism that has nothing to set."""


class Laplace(Mechanism):
    """Laplace and Uniform."""

    noise: Literal["joint", "laplace"] | None = Field(None, description=NOISE)


class Fourier(Mechanism):
    n_coefficients: int = Field(10, description="an integer of at least 1")

    @classmethod
    def variants(cls, numbers: Sequence[int]) -> Iterator[tuple[str, dict[str, dict[str, Any]]]]:
        """As any mechanism's."""
        for number in numbers:
            yield f", {number} coefficients", {"mechanism": {"n_coefficients": number}}


class Kellaris(Mechanism):
    """Budget distribution and budget absorption."""

    distance_share: Number = Field("1/2", validate_default=True, description=SHARE)


class PeGaSus(Mechanism):
    perturber_share: Number = Field("4/5", validate_default=True, description=SHARE)
    threshold: Number | None = Field(None, description='a decimal string of at least 0, such as "50"')
    smoother: Literal["median", "average", "james_stein"] = Field(
        "median", description='"median", "average" or "james_stein"'
    )
    groups: Literal["own", "children"] = Field("own", description='"own" or "children"')

    @property
    def takes_margin(self) -> bool:
        """With groups of its own: those of children are refined along one tree."""
        return self.groups == "own"


class Fast(Mechanism):
    """Numbers that only shape the estimate may be floats; none of them enters a price but n_samples."""

    n_samples: int | None = Field(None, description="an integer in [1, privacy.window]")
    sampling: Literal["adaptive", "fixed"] = Field("adaptive", description='"adaptive" or "fixed"')
    predictor: Literal["kalman", "linear"] = Field("kalman", description='"kalman" or "linear"')
    proportional: Annotated[float, GAIN] = 0.9
    integral: Annotated[float, GAIN] = 0.1
    derivative: Annotated[float, GAIN] = 0.0
    integration_time: int | None = Field(None, description="an integer in [1, n_samples]")
    interval_step: Annotated[float, AMOUNT] = 5.0
    set_point: Annotated[float, AMOUNT] = 0.1
    min_interval: int = Field(1, description="an integer in [1, privacy.window]")
    process_deviation: Annotated[float | None, AMOUNT] = None
    error_floor: Annotated[float | None, AMOUNT] = None


class Proxy(Section):
    """Prior medians that were learned from a public series, and from which: lineage says both."""

    learned_from: str = Field(min_length=1, max_length=500)
    medians: dict[str, Annotated[tuple[float, ...], Field(strict=False)]]

    @model_validator(mode="after")
    def _of_components(self) -> "Proxy":
        try:
            _ = self.components
        except ParameterError as error:
            raise ValueError(str(error)) from error
        return self

    @property
    def components(self) -> tuple[Any, ...]:
        """The prior's, with these medians. Raises ParameterError for others than it has."""
        # a third of a second: only where a proxy is given
        from optstream.mechanisms.history_informed.public_prior import with_medians

        return with_medians(self.medians)


class HistoryInformed(Mechanism):
    """All of it must be public. Ranges are checked here: to make the mechanism may take seconds."""

    n_blocks: int | None = Field(None, ge=1, le=10**6, description="an integer in [1, privacy.window]")
    block_length: int | None = Field(None, ge=1, le=10**6, description="an integer in [1, 1000000]")
    scale: float | None = Field(None, ge=1e-9, le=1e15, description="a number in [1e-09, 1e+15]")
    history_days: int = Field(56, ge=1, le=366, description="a number of days, an integer in [1, 366]")
    relearn_days: int = Field(
        28, ge=0, le=36500, description="a number of days, an integer in [0, 36500], 0 for never"
    )
    country: str | None = Field(
        None, pattern=r"^[A-Z]{2}$", description='a country whose public holidays count, such as "FR"'
    )
    holidays: tuple[date, ...] = Field(
        (), strict=False, max_length=MOST_HOLIDAYS, description=f"a list of dates, at most {MOST_HOLIDAYS}"
    )
    proxy: Proxy | None = Field(None, description=PROXY)
    noise: Literal["joint", "laplace"] | None = Field(None, description=NOISE)

    @property
    def parameters(self) -> dict[str, Any]:
        """As any mechanism's; a proxy is to it other components, and holidays are in its `days`."""
        given = super().parameters
        proxy = given.pop("proxy", None)
        given = {key: value for key, value in given.items() if key not in ("country", "holidays")}
        return given if proxy is None else given | {"components": proxy.components}

    def check(self, model: PrivacyModel) -> None:
        """Do nothing: see above."""

    def holidays_around(self, day: date) -> tuple[date, ...]:
        """As any mechanism's. Raises ParameterError for a country that is not known."""
        from tasks.covariates.public_holidays import public_holidays  # only where one asks

        years = range(day.year - 1, day.year + 2)
        return (*self.holidays, *(public_holidays(self.country, years) if self.country else ()))


_WITH_KEYS: dict[str, type[Mechanism]] = {
    "OptStream": OptStream,
    "Laplace": Laplace,
    "Uniform": Laplace,
    "Fourier": Fourier,
    "BudgetDistribution": Kellaris,
    "BudgetAbsorption": Kellaris,
    "PeGaSus": PeGaSus,
    "Fast": Fast,
    "HistoryInformed": HistoryInformed,
}
MECHANISMS = {name: _WITH_KEYS.get(name, Plain) for name in mechanisms.MECHANISMS}
NAMES = " or ".join(f'"{name}"' for name in MECHANISMS)
OWN_TABLES = {table for section in MECHANISMS.values() for table in section.tables}
"""What of the file is for some mechanisms only."""


def names_with(table: str) -> str:
    """Those that have a table, as a message says them."""
    return " or ".join(f'"{name}"' for name, section in MECHANISMS.items() if table in section.tables)


def kinds_with(fact: str) -> str:
    """Those of whose class a fact is true, as a message says them; loads them all."""
    return " and ".join(f'"{name}"' for name in MECHANISMS if getattr(getattr(mechanisms, name), fact))


def names_in(currency: str) -> str:
    """Those that are priced in a currency, as a message says them; loads them all."""
    return " or ".join(f'"{name}"' for name in MECHANISMS if getattr(mechanisms, name).currency == currency)


def section_of(table: Any) -> type[Mechanism] | None:
    """The section for what the table calls itself; None if it names no known mechanism."""
    name = table.get("name") if isinstance(table, dict) else None
    return MECHANISMS.get(name) if isinstance(name, str) else None
