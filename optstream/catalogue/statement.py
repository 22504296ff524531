"""What a published release says about itself: whose it is, what it protects and what it cost."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from decimal import ROUND_CEILING, ROUND_UP, Context, Decimal
from fractions import Fraction
from typing import Any, Literal, TypeGuard, TypeVar, get_args

from optstream.catalogue.layout import errors_file, is_hash, measurements_file
from optstream.catalogue.rows import CountBands, StandardErrors, check_value_column
from optstream.errors import OptStreamError, ParameterError, PublicationError
from optstream.estimation.estimate import Optimality
from optstream.mechanisms import mechanism_named
from optstream.privacy import GaussianSpend, JointSpend
from optstream.privacy.exact import exact_from_text, whole
from optstream.privacy.model import PrivacyModel
from optstream.privacy.spends import Spend, StepSpend
from optstream.stream.calendar import DayKind
from optstream.stream.period import period_from

# How near a release's values are to the optimum of the bounded program that made them add up.

LEAST = 1e-18
"""Figures below it say no more than that the last digits are exact, and differ between processors."""
ONE_DIGIT = Context(prec=1, rounding=ROUND_UP)


def rounded(optimality: Optimality) -> Optimality:
    """Return the certificate of an estimate as a release states it.

    Gap and residual are rounded up to one digit and to `LEAST` or its root at least, so that another
    processor's last bits make no other statement.
    """
    return Optimality(
        _up(max(optimality.gap, LEAST)),
        _up(max(optimality.residual, math.sqrt(LEAST))),
        optimality.rounds,
        optimality.converged,
    )


def consistency_in_words(optimality: Optimality) -> str:
    """Return what the certificate says, in a sentence or two."""
    distance = f"{_up(optimality.distance):g}"
    if optimality.converged:
        return (
            "Values lay below the lower bound, so the program that raises them was solved: every value, and "
            f"every sum of values, is within {distance} of its own standard error of the optimum."
        )
    return (
        "Values lay below the lower bound, and the program that raises them was not solved to the end: nodes "
        f"add up and respect the bound, but a value may be {distance} of its own standard errors from the "
        "optimum."
    )


def to_document(optimality: Optimality) -> dict[str, Any]:
    """Return a JSON-ready document of a certificate that was `rounded`."""
    return {
        "gap": optimality.gap,
        "distance": _up(optimality.distance),
        "residual": optimality.residual,
        "rounds": optimality.rounds,
        "converged": optimality.converged,
        "in_words": consistency_in_words(optimality),
    }


def from_document(document: Mapping[str, Any]) -> Optimality:
    """Read back what `to_document` wrote; its distance and words are not read.

    Raises:
        KeyError, TypeError, ValueError: for anything else.
    """
    gap, residual = float(document["gap"]), float(document["residual"])
    rounds, converged = document["rounds"], document["converged"]
    if not (0 <= gap < math.inf and 0 <= residual < math.inf):
        raise ValueError("gap and residual must be finite and at least 0")
    if isinstance(rounds, bool) or not isinstance(rounds, int) or rounds < 0:
        raise ValueError("rounds must be a number of rounds")
    if not isinstance(converged, bool):
        raise ValueError("converged must be true or false")
    return Optimality(gap, residual, rounds, converged)


def _up(figure: float) -> float:
    return float(ONE_DIGIT.create_decimal(Decimal(repr(figure))))


# What a customer's readings of a month or a year lose by a release's plan, as its statement has it.

DIGITS = 4
"""Significant ones that are stated: the same figure on machines whose floats round differently."""
COMPOSED = ("draws", "windows", "plain", "rho")


@dataclass(frozen=True)
class LongSpan:
    """What all readings of one customer in several days in a row lose, each day released once by one plan.

    Attributes:
        n_days: How many days, at least 1.
        epsilon: The loss at `delta`, exact.
        delta: The most that is added to any probability beside the factor e^epsilon; between 0 and 1.
        plain_sum: The sum over all days, exact: the loss at delta 0, or rho.
        composed: What was composed, "draws" or "windows"; "plain" where that is no less than `plain_sum`,
            "rho" where `plain_sum` is that.

    Raises:
        ParameterError: A field is outside its range; names it.
    """

    n_days: int
    epsilon: Fraction
    delta: Fraction
    plain_sum: Fraction
    composed: str

    def __post_init__(self) -> None:
        whole(self.n_days, "n_days of LongSpan", 1, 2**31 - 1)
        for name in ("epsilon", "delta", "plain_sum"):
            if not isinstance(amount := getattr(self, name), Fraction) or amount < 0:
                raise ParameterError(f"{name} of LongSpan must be a Fraction of at least 0; got {amount!r}")
        if not 0 < self.delta < 1:
            raise ParameterError(f"delta of LongSpan must be between 0 and 1; got {self.delta}")
        if self.composed not in COMPOSED:
            raise ParameterError(f"composed of LongSpan must be one of {COMPOSED}; got {self.composed!r}")

    @classmethod
    def rounded(
        cls, n_days: int, epsilon: float, delta: Fraction, plain_sum: Fraction, composed: str
    ) -> "LongSpan":
        """Return a span whose two amounts are rounded up to four significant digits.

        So the figure is the same on machines whose floats round differently, and is never understated.

        Args:
            n_days: How many days, at least 1.
            epsilon: The loss at `delta`.
            delta: Between 0 and 1; not rounded.
            plain_sum: The loss at delta 0.
            composed: "draws", "windows", "plain" or "rho".

        Returns:
            The span.

        Raises:
            ParameterError: A value is outside its range; names it.
        """
        return cls(n_days, _rounded_up(Fraction(epsilon)), delta, _rounded_up(plain_sum), composed)

    def to_document(self) -> dict[str, Any]:
        """Return a JSON-ready document.

        Returns:
            The fields by name; amounts exact, as "numerator/denominator".
        """
        amounts = {name: str(getattr(self, name)) for name in ("epsilon", "delta", "plain_sum")}
        return {"n_days": self.n_days, **amounts, "composed": self.composed}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "LongSpan":
        """Read back what `to_document` wrote.

        Args:
            document: With the keys of the fields.

        Returns:
            The span.

        Raises:
            KeyError: A key is missing.
            TypeError: A value is of another type.
            ValueError: A value is out of range (ParameterError), or no exact number.
            ZeroDivisionError: A denominator is 0.
        """
        epsilon, delta, plain = (
            exact_from_text(document[name]) for name in ("epsilon", "delta", "plain_sum")
        )
        return cls(document["n_days"], epsilon, delta, plain, document["composed"])


def spans_in_words(spans: Sequence[LongSpan], decimal: Callable[[Fraction], str]) -> str:
    """Return one sentence for all spans. decimal: writes an amount, rounded up."""
    in_rho = any(span.composed == "rho" for span in spans)
    told = ", ".join(
        f"in {span.n_days} days at most epsilon {decimal(span.epsilon)} at delta {float(span.delta):g} "
        f"({'rho' if in_rho else 'plain sum'} {decimal(span.plain_sum)})"
        for span in spans
    )
    holds = "rho is that of zero-concentrated privacy" if in_rho else "the plain sum holds at delta 0"
    return (
        "Where all readings of a customer on several days in a row change, this one among them, each day "
        f"released once under this plan, they lose {told}, delta being the most that is added to any "
        f"probability beside the factor e^epsilon; {holds}."
    )


def _rounded_up(amount: Fraction) -> Fraction:
    """Return the amount rounded to `DIGITS` significant digits, never less than the amount."""
    return Fraction(Context(DIGITS, ROUND_CEILING).divide(amount.numerator, amount.denominator))


# The noise of a release, as its statement tells it.

GAUSSIAN = "discrete Gaussian"


@dataclass(frozen=True)
class NoiseScale:
    """The noise of one measurement.

    Attributes:
        level: Depth in the tree, root 0.
        stage: What was measured ("samples", "features/day").
        scale: Of the noise, in units of the model's resolution, exact; None where one scale does not describe
            the measurement.
        joint_over: How many measurements share joint noise at most; None for Laplace noise.
        n_nodes: Of the level, with joint noise; else None.
        is_gaussian: Whether the noise is discrete Gaussian, and `scale` its sigma.
    """

    level: int
    stage: str
    scale: Fraction | None
    joint_over: int | None = None
    n_nodes: int | None = None
    is_gaussian: bool = False

    @property
    def needs_one_leaf(self) -> bool:
        """Whether it is priced for customers whose readings of a period lie in one leaf (Lemma 16)."""
        return self.n_nodes is not None and self.n_nodes > 1

    def to_document(self, resolution: Fraction) -> dict[str, Any]:
        """Return a JSON-ready document.

        Args:
            resolution: Of the model, in the unit of the values.

        Returns:
            `scale` in the unit of the values and `scale_units` in units of the resolution, both exact, and
            the rest; `joint_over` and `n_nodes` for joint noise alone, `law` for Gaussian noise alone.
        """
        scale = None if self.scale is None else str(self.scale * resolution)
        units = None if self.scale is None else str(self.scale)
        document = {"level": self.level, "stage": self.stage, "scale": scale, "scale_units": units}
        if self.is_gaussian:
            return document | {"law": GAUSSIAN}
        return document if self.joint_over is None else document | self._groups

    @property
    def _groups(self) -> dict[str, Any]:
        """The keys of joint noise; its words are for readers, and not read back."""
        words = f"joint over {self.joint_over} {'steps' if self.stage == 'samples' else self.stage}"
        return {"noise": words, "joint_over": self.joint_over, "n_nodes": self.n_nodes}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "NoiseScale":
        """Read back what `to_document` wrote.

        Args:
            document: With the keys level, stage and scale_units.

        Returns:
            The scale.

        Raises:
            KeyError: A key is missing.
            TypeError: A value is of another type.
            ValueError: A value is no number.
            ZeroDivisionError: A denominator is 0.
        """
        units = document["scale_units"]
        scale = None if units is None else exact_from_text(units)
        is_gaussian = document.get("law") == GAUSSIAN
        found = cls(int(document["level"]), str(document["stage"]), scale, is_gaussian=is_gaussian)
        if "joint_over" not in document:
            return found
        return replace(found, joint_over=int(document["joint_over"]), n_nodes=int(document["n_nodes"]))


def noise_scales(spends: Iterable[Spend]) -> tuple[NoiseScale, ...]:
    """Return the distinct noise scales of a release's spends.

    Args:
        spends: What the release is charged.

    Returns:
        Scales in the order of the spends.
    """
    return tuple(dict.fromkeys(_noise_of(spend) for spend in spends))


def _noise_of(spend: Spend) -> NoiseScale:
    if isinstance(spend, JointSpend):
        largest = max((len(group) for group in spend.groups), default=0)
        return NoiseScale(spend.level, spend.stage, spend.scale, largest, spend.n_nodes)
    if isinstance(spend, GaussianSpend):
        return NoiseScale(spend.level, spend.stage, spend.scale, is_gaussian=True)
    return NoiseScale(spend.level, spend.stage, spend.scale if _has_one_scale(spend) else None)


def _has_one_scale(spend: Spend) -> TypeGuard[StepSpend]:
    """Return whether every answer has the spend's own scale: a part of a weight stands for a larger one."""
    return isinstance(spend, StepSpend) and all(weight == int(weight) for weight in spend.weights)


# What a release's statement says of the files beside it: its measurements, and its errors.

ErrorsOf = Literal["whole", "noise"]
"""The whole errors of the values, or what the noise alone did to them."""


@dataclass(frozen=True)
class StatedMeasurements:
    """The file of measurements that belongs to a release.

    Attributes:
        file_hash: SHA-256 of the file.
        later: The days after the release's own whose measurements a new estimate is made of, rising.

    Raises:
        ParameterError: The hash is none, or the days do not rise.
    """

    file_hash: str
    later: tuple[date, ...] = ()

    def __post_init__(self) -> None:
        if not is_hash(self.file_hash):
            raise ParameterError(
                "file_hash of StatedMeasurements must be a SHA-256 in lower-case hexadecimal"
            )
        if list(self.later) != sorted(set(self.later)):
            raise ParameterError("later of StatedMeasurements must be rising days")

    def to_document(self, period: date, revision: int) -> dict[str, Any]:
        """Return a JSON-ready document.

        Args:
            period: The local day of the release.
            revision: Of the release.

        Returns:
            The file relative to the published folder, its hash, and the days after, where there are any.
        """
        file = measurements_file(period, revision, self.file_hash)
        document: dict[str, Any] = {"file": file, "file_hash": self.file_hash}
        return document | ({"later": [day.isoformat() for day in self.later]} if self.later else {})

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "StatedMeasurements":
        """Read back what `to_document` wrote; its file follows from the hash and is not read.

        Args:
            document: With the key file_hash.

        Returns:
            What the statement says.

        Raises:
            KeyError: A key is missing.
            TypeError: A value is of another type.
            ValueError: A day is no date.
            ParameterError: The hash is none.
        """
        return cls(document["file_hash"], tuple(period_from(day) for day in document.get("later", ())))


@dataclass(frozen=True)
class StatedErrors:
    """The file of errors that belongs to a release (docs/data/sums.md).

    Attributes:
        file_hash: SHA-256 of the file.
        of: Which errors it tells of.

    Raises:
        ParameterError: The hash is none, or there are no such errors.
    """

    file_hash: str
    of: ErrorsOf

    def __post_init__(self) -> None:
        if not is_hash(self.file_hash):
            raise ParameterError("file_hash of StatedErrors must be a SHA-256 in lower-case hexadecimal")
        if self.of not in get_args(ErrorsOf):
            raise ParameterError('of of StatedErrors must be "whole" or "noise"')

    def to_document(self, period: date, revision: int, vintage: int) -> dict[str, Any]:
        """Return a JSON-ready document.

        Args:
            period: The local day of the release.
            revision: Of the release.
            vintage: Of the release.

        Returns:
            The file relative to the published folder, its hash, and which errors it tells of.
        """
        file = errors_file(period, revision, vintage, self.file_hash)
        return {"file": file, "file_hash": self.file_hash, "of": self.of}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "StatedErrors":
        """Read back what `to_document` wrote; its file follows from the hash and is not read.

        Args:
            document: With the keys file_hash and of.

        Returns:
            What the statement says.

        Raises:
            KeyError: A key is missing.
            ParameterError: As the class.
        """
        return cls(document["file_hash"], document["of"])


FORMAT = "optstream.statement/1"
MARGIN = "margin"
"""Key of `mechanism`: what the last level is called, where it is a margin."""
TREE = "tree_sha256"
"""In a mechanism's parameters: what identifies the tree of the day, and the list of trees up to it."""
LONGEST_TEXT = 200
Told = TypeVar("Told")
TEXTS = ("stream", "code_version", "configuration_hash", "time_zone")
CALIBRATIONS = "strict", "paper"
"""The second is of earlier versions."""
PLAIN = (*TEXTS, "revision", "vintage", "value_column", "step_minutes", "day", "calibration", "simulated")
"""Fields that are read from the document as they are."""


@dataclass(frozen=True, kw_only=True)
class ReleaseStatement:
    """One release in public facts. Nothing in it may come from raw values, clocks or durations.

    Attributes:
        stream: Name of the stream.
        period: The local day.
        revision: From 0 on, as the ledger counts it.
        vintage: From 0 on, as the ledger counts it.
        model: The privacy guarantee.
        mechanism: {"name": …} with all its parameters, JSON-ready.
        calibration: "strict"; an earlier version had "paper" for the noise scales of the papers.
        epsilon_plan: What the plan, repeated, costs any window, as accounted, exact; at the model's delta, if
            it has one, rounded up (`PrivacyModel.told_epsilon`).
        epsilon_own: What this release's measurements alone cost any window, likewise.
        noise: `noise_scales` of the release's spends.
        simulated: Whether it was drawn with seeded noise; such a release cannot be published.
        code_version: Of the program that made it.
        configuration_hash: SHA-256 of the configuration that shaped it.
        value_column: Name of the published values, which also tells their unit ("load_mw").
        step_minutes: Length of a step.
        time_zone: In which days are cut into steps, such as "Europe/Paris".
        day: How a day is cut where the clocks change.
        standard_errors: Of which values they are known; None for a release from before there were any.
        supplier_rounding: The part of the model's alpha that is not one customer's change, but what the
            supplier's rounding of sums adds to it; less than alpha, in the unit of the values.
        budget_alpha: The alpha of the budget's other streams, where this one has its own; else None.
        long_spans: What a month and a year lose by the plan; () for a release from before it was stated.
        optimality: How near the values are to the optimum of the bounded program, as `consistency.rounded`;
            None where no value lay below the bound, and for a release from before it was stated.
        bands: Of which counts they are known; None where readings are no counts.
        measurements: The file of what it is computed from; None where that is not published.
        errors: The file of how its errors hang together; None where there is none.
        no_errors: Why there is none, in words; None where there is one, and for an older release.
        bounds: Lowest and highest reading, others were clamped to them; None where they are not recorded.
        metered: Whether each row of the input was one customer's; None where that is not recorded.

    Raises:
        ParameterError: A field is outside its range; names it.
    """

    stream: str
    period: date
    revision: int
    vintage: int
    model: PrivacyModel
    mechanism: Mapping[str, Any]
    calibration: Literal["strict", "paper"]
    epsilon_plan: Fraction
    epsilon_own: Fraction
    noise: tuple[NoiseScale, ...]
    simulated: bool
    code_version: str
    configuration_hash: str
    value_column: str
    step_minutes: int
    time_zone: str
    day: DayKind
    standard_errors: StandardErrors | None = None
    supplier_rounding: Fraction = Fraction(0)
    budget_alpha: Fraction | None = None
    long_spans: tuple[LongSpan, ...] = ()
    optimality: Optimality | None = None
    bands: CountBands | None = None
    measurements: StatedMeasurements | None = None
    errors: StatedErrors | None = None
    no_errors: str | None = None
    bounds: tuple[Fraction, Fraction] | None = None
    metered: bool | None = None

    def __post_init__(self) -> None:
        for name in (*TEXTS, *(("no_errors",) if self.no_errors is not None else ())):
            _check_text(getattr(self, name), f"{name} of ReleaseStatement")
        for name, least in (("revision", 0), ("vintage", 0), ("step_minutes", 1)):
            whole(getattr(self, name), f"{name} of ReleaseStatement", least, 2**31 - 1)
        for name in ("epsilon_plan", "epsilon_own", "supplier_rounding"):
            if not isinstance(amount := getattr(self, name), Fraction) or amount < 0:
                raise ParameterError(
                    f"{name} of ReleaseStatement must be a Fraction of at least 0; got {amount!r}"
                )
        for name, legal in (("calibration", CALIBRATIONS), ("day", get_args(DayKind))):
            if (choice := getattr(self, name)) not in legal:
                raise ParameterError(f"{name} of ReleaseStatement must be one of {legal}; got {choice!r}")
        if not isinstance(self.period, date) or isinstance(self.period, datetime):
            raise ParameterError("period of ReleaseStatement must be a date")
        if self.bounds is not None and not self.bounds[0] < self.bounds[1]:
            raise ParameterError("bounds of ReleaseStatement must have the lower first")
        if self.metered is not None and not isinstance(self.metered, bool):
            raise ParameterError("metered of ReleaseStatement must be true, false or absent")
        if not isinstance(self.simulated, bool):
            raise ParameterError("simulated of ReleaseStatement must be true or false")
        if not isinstance(self.mechanism, Mapping) or not isinstance(self.mechanism.get("name"), str):
            raise ParameterError("mechanism of ReleaseStatement must be a mapping with a name")
        if self.supplier_rounding >= self.model.alpha:
            raise ParameterError("supplier_rounding of ReleaseStatement must be less than the model's alpha")
        check_value_column(self.value_column)

    @property
    def epsilon_of_grant(self) -> Fraction:
        """What any window with a step of this release costs at most, over all plans: what the ledger allows.

        A plan that costs more than it was asked to, as the paper's scales do, is stated in full.
        """
        return max(self.model.epsilon, self.epsilon_plan)

    @property
    def covered_change(self) -> Fraction:
        """The change of a reading that epsilon covers: alpha, less what the supplier's rounding has of it."""
        return self.model.alpha - self.supplier_rounding

    @property
    def covered_in_words(self) -> str:
        """The `covered_change` as readers see it, in the unit of the values."""
        return decimal_below(self.covered_change)

    @property
    def leaves_in_words(self) -> str:
        """Whom the release covers, where its noise is priced for customers in few leaves; else ""."""
        kind = mechanism_named(self.mechanism["name"])
        one_leaf = self.model.unit == "customer" and kind is not None and kind.one_leaf_a_period
        if not one_leaf and not any(entry.needs_one_leaf for entry in self.noise):
            return ""
        most = self.mechanism.get("leaves_per_period", 1)
        leaves = "leaf" if most == 1 else "leaves"
        return f"It covers customers whose readings of one period lie in at most {most} {leaves}."

    @property
    def rows_in_words(self) -> str:
        """How readings were taken in, and what protects whether a customer has any (docs/privacy.md, 1)."""
        if self.bounds is None or self.metered is None:
            return (
                "Bounds and rows of the input are not recorded: whether a customer has readings at all is "
                "taken not to be covered."
            )
        clamped = f"Readings are clamped to {' to '.join(map(plain_number, self.bounds))}"
        if not self.metered:
            return (
                f"{clamped}, a row for each leaf and step, the supplier's sum: whether a customer has "
                "readings at all is not covered."
            )
        reach, rows = max(map(abs, self.bounds)), f"{clamped}, a row for each customer and step"
        if reach <= self.covered_change:
            return f"{rows}: whether a customer has readings at all is covered as a change of a reading is."
        times = math.ceil(reach / self.covered_change)
        cost = f"{times**2} times rho" if self.model.delta else f"{times} times epsilon"
        return (
            f"{rows}: whether a customer has readings at all is covered only as a change of up to "
            f"{plain_number(reach)} in each reading, which costs {cost}."
        )

    @property
    def _presence_in_words(self) -> str:
        """As `rows_in_words`; of a statement without bounds and rows the bytes that were published."""
        if self.bounds is None or self.metered is None:
            return (
                "Whether a customer has readings at all is covered only where each row of the input is one "
                "customer's, clamped to at most that size above and below 0."
            )
        return (
            f"{self.rows_in_words} A window over days of several statements is covered for what each of them "
            "covers; one with a step of a day whose noise became known (see about.json) is not covered."
        )

    @property
    def terms_in_words(self) -> str:
        """What the release was drawn under: the same text for releases that protect the same."""
        model = self.model
        kind = "sliding" if model.windows == "sliding" else "inside one period"
        leaves = "one leaf" if model.unit == "customer" else f"up to {model.leaves_per_step} leaves"
        rho = f" (rho {float(model.rho):.6g})" if model.rho is not None else ""
        words = (
            f"epsilon at most {_decimal(self.epsilon_of_grant)}{rho}{self._delta_in_words} for any "
            f"{model.window_length} consecutive steps of {self.step_minutes} minutes in {self.time_zone} "
            f"({kind}), changes of a reading of at most {self.covered_in_words} in {leaves} at a step; "
            f"measured by {self.mechanism['name']}. {self.rows_in_words}"
        )
        return f"{words} {self.leaves_in_words}".strip()

    def in_words(self) -> str:
        """Return what one customer's protection covers, and what it does not.

        Returns:
            Sentences for data users. Costs are rounded up and what is covered is rounded down, to four
            decimals.
        """
        if self.simulated:
            return "The noise is simulated, drawn from a seed: this release protects nobody."
        model = self.model
        leaves = "one leaf" if model.unit == "customer" else f"up to {model.leaves_per_step} leaves"
        who = f"one customer's readings, in {leaves} at a step,"
        straddle = "also where it straddles periods"
        if model.windows == "aligned":
            straddle = "inside one period; windows that straddle two periods are not covered"
        sentences = [
            f"This plan, repeated period after period, changes anyone's odds about {who} in any window of "
            f"{model.window_length} consecutive steps of {self.step_minutes} minutes ({straddle}) by at most "
            f"a factor e^epsilon{self._delta_in_words}, with epsilon at most {_decimal(self.epsilon_plan)}; "
            f"the measurements of this release alone cost at most {_decimal(self.epsilon_own)}.",
            *([self._rho_in_words] if model.delta else []),
            "A window that also holds releases made under another plan, restatements, or other streams that "
            f"share this stream's privacy budget costs at most {_decimal(self.epsilon_of_grant)} with all "
            "of them together. Where the statement of one of those limits the leaves of a period, or names "
            "a larger rounding of the supplier's, this figure holds for what that statement covers too.",
            f"This covers changes of each reading by at most {self.covered_in_words} in the unit of "
            f"{self.value_column}: a change at most c times as large, c a whole number, costs at most "
            f"{'c^2 times rho' if model.delta else 'c times epsilon'}. {self._presence_in_words}",
            *([spans_in_words(self.long_spans, _decimal)] if self.long_spans else []),
            "Longer spans, revisions and other streams over the same customers add up; several meters of one "
            "household count as several customers; habits known from elsewhere are outside the guarantee.",
        ]
        if self.budget_alpha is not None:
            sentences.append(
                "The privacy budget is shared with streams of another quantity, each with a size of change "
                "of its own: a window covers one customer's changes in all of them, in each up to its own."
            )
        if self.supplier_rounding:
            sentences.append(
                f"The readings are the supplier's sums, whose errors are taken to spread by at most "
                f"{_decimal(self.supplier_rounding)}: the noise is for that too."
            )
        if self.leaves_in_words:
            sentences.append(self.leaves_in_words)
        if self.vintage:
            sentences.append(
                f"This is vintage {self.vintage}, a revised estimate from measurements that were drawn and "
                "charged before: it costs nothing more."
            )
        if self.calibration == "paper":
            sentences.append(
                "The noise scales are the paper's own, so the epsilon that was accounted is the one that "
                f"holds, not the {_decimal(model.epsilon)} that was asked for."
            )
        return " ".join(sentences)

    @property
    def _delta_in_words(self) -> str:
        delta = float(self.model.delta)
        return f", and by at most delta = {delta:g} added to any probability" if delta else ""

    @property
    def _rho_in_words(self) -> str:
        assert self.model.rho is not None  # there is a delta
        return (
            "The noise is Gaussian, and what is added up is rho of zero-concentrated privacy: any window has "
            f"at most {float(self.model.rho):.6g} of it, which gives epsilon {_decimal(self.model.epsilon)} "
            "at that delta; every other delta has an epsilon of its own, and none is 0."
        )

    @property
    def beside(self) -> tuple[tuple[str, str], ...]:
        """The files that belong to the release: each by its place in the published folder, and its hash."""
        found = []
        if self.measurements:
            digest = self.measurements.file_hash
            found.append((measurements_file(self.period, self.revision, digest), digest))
        if self.errors:
            digest = self.errors.file_hash
            found.append((errors_file(self.period, self.revision, self.vintage, digest), digest))
        return tuple(found)

    def to_document(self) -> dict[str, Any]:
        """Return a JSON-ready document.

        Returns:
            Text and integers, in the order of the stored bytes; fractions exact, as "numerator/denominator".
        """
        # each by itself, for their order is that of the stored bytes, which signatures and hashes cover
        document: dict[str, Any] = {
            "format": FORMAT,
            "stream": self.stream,
            "period": self.period.isoformat(),
            "revision": self.revision,
            "vintage": self.vintage,
            "value_column": self.value_column,
            "step_minutes": self.step_minutes,
            "time_zone": self.time_zone,
            "day": self.day,
            "privacy_model": self.model.to_document(),
            "privacy_in_words": self.in_words(),
            "mechanism": dict(self.mechanism),
            "calibration": self.calibration,
            "epsilon_plan": str(self.epsilon_plan),
            "epsilon_own": str(self.epsilon_own),
            "noise": [entry.to_document(self.model.resolution) for entry in self.noise],
            "simulated": self.simulated,
            "code_version": self.code_version,
            "configuration_hash": self.configuration_hash,
        }
        if self.budget_alpha is not None:
            document["budget_alpha"] = str(self.budget_alpha)
        if self.supplier_rounding:
            document["supplier_rounding"] = str(self.supplier_rounding)
        if self.long_spans:
            document["long_spans"] = [span.to_document() for span in self.long_spans]
        if self.standard_errors:
            document["standard_errors"] = self.standard_errors.to_document(self.value_column)
        if self.optimality:
            document["consistency"] = to_document(self.optimality)
        if self.bands:
            document["bands"] = self.bands.to_document(self.value_column)
        if self.measurements:
            document["measurements"] = self.measurements.to_document(self.period, self.revision)
        if self.errors:
            document["errors"] = self.errors.to_document(self.period, self.revision, self.vintage)
        if self.no_errors is not None:
            document["no_errors"] = self.no_errors
        if self.bounds is not None:
            document["bounds"] = [str(bound) for bound in self.bounds]
        if self.metered is not None:
            document["metered"] = self.metered
        return document

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> "ReleaseStatement":
        """Read back what `to_document` wrote; its words are not read.

        Args:
            document: Of format optstream.statement/1.

        Returns:
            The statement.

        Raises:
            PublicationError: The document is something else.
        """
        try:
            if document["format"] != FORMAT:
                raise ValueError
            return cls(
                **{name: document[name] for name in PLAIN},
                mechanism=document["mechanism"],
                period=period_from(document["period"]),
                model=PrivacyModel(**document["privacy_model"]),
                epsilon_plan=exact_from_text(document["epsilon_plan"]),
                epsilon_own=exact_from_text(document["epsilon_own"]),
                noise=tuple(NoiseScale.from_document(entry) for entry in document["noise"]),
                standard_errors=_told(document, "standard_errors", StandardErrors.from_document),
                supplier_rounding=exact_from_text(document.get("supplier_rounding", "0")),
                budget_alpha=_told(document, "budget_alpha", exact_from_text),
                long_spans=tuple(LongSpan.from_document(span) for span in document.get("long_spans", ())),
                optimality=_told(document, "consistency", from_document),
                bands=_told(document, "bands", CountBands.from_document),
                measurements=_told(document, "measurements", StatedMeasurements.from_document),
                errors=_told(document, "errors", StatedErrors.from_document),
                no_errors=document.get("no_errors"),
                bounds=_told(document, "bounds", _two_bounds),
                metered=document.get("metered"),
            )
        except (OptStreamError, ValueError, KeyError, TypeError, ArithmeticError) as error:
            raise PublicationError(f"a release's statement is not {FORMAT} as OptStream writes it") from error


def _two_bounds(document: Any) -> tuple[Fraction, Fraction]:
    low, high = (
        -exact_from_text(text[1:]) if text.startswith("-") else exact_from_text(text)
        for text in map(str, document)
    )
    return low, high


def _told(document: Mapping[str, Any], key: str, read: Callable[[Any], Told]) -> Told | None:
    """Return what a key tells, where it is there: older releases lack those that came later."""
    return None if document.get(key) is None else read(document[key])


def _check_text(text: object, name: str) -> None:
    if not isinstance(text, str) or not 0 < len(text) <= LONGEST_TEXT or not text.isprintable():
        raise ParameterError(f"{name} must be printable text of 1 to {LONGEST_TEXT} characters")


def _decimal(amount: Fraction) -> str:
    """Return four decimals, rounded up: the words may overstate a cost, never understate it."""
    whole, rest = divmod(math.ceil(amount * 10**4), 10**4)
    return f"{whole}.{rest:04d}".rstrip("0").rstrip(".")


def plain_number(amount: Fraction) -> str:
    """An exact number as people read it."""
    return f"{amount.numerator:,}" if amount.denominator == 1 else f"{float(amount):.6g}"


def decimal_below(amount: Fraction) -> str:
    """Return four decimals, rounded down: the words may understate what is covered, never overstate it.

    The fraction itself where the decimals would all be 0.
    """
    below = Fraction(math.floor(amount * 10**4), 10**4)
    return _decimal(below) if below else str(amount)
