"""What goes into the ledger and what comes out of it: frozen values."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from fractions import Fraction
from itertools import pairwise, takewhile
from typing import NamedTuple

from optstream.errors import ParameterError
from optstream.privacy import PrivacyModel, Spend

LONGEST_NAME = 500
LONGEST_LEASE = timedelta(days=1)
"""A run that lives renews its lease; one that died holds its days no longer than this."""

# A stream's trees by the day: first step and hash of each.

Entries = tuple[tuple[int | None, str], ...]
"""(running index of the first step, hash of the list up to here); None for the oldest tree, then rising."""


def continues(known: Entries, wanted: Entries, reserved_until: int) -> bool:
    """Return whether every step before `reserved_until` has the same tree by both lists (Lemma 18)."""
    pairs = zip(known, wanted, strict=False)
    same = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    rest = (*known[same:], *wanted[same:])
    return same > 0 and all(step is not None and step >= reserved_until for step, _ in rest)


def hash_at(entries: Entries, first_step: int) -> str:
    """Return what identifies the tree of a period that begins at this step, and all before it."""
    return [name for step, name in entries if step is None or step <= first_step][-1]


def trees_from(terms: Mapping[str, object]) -> Entries:
    """Return the list of trees in an event about a stream's terms, or in its row."""
    given = terms.get("hierarchy", ())
    if not isinstance(given, list | tuple):
        raise TypeError("a list of trees is a list")
    found = tuple((step, str(name)) for step, name in given)
    return found or ((None, str(terms["hierarchy_hash"])),)


class Key(NamedTuple):
    """A release: its stream, the key of its period, such as "2016-02-01", and from 1 on which restatement."""

    stream: str
    period: str
    revision: int = 0

    def __str__(self) -> str:
        return f"stream {self.stream!r}, period {self.period!r}, revision {self.revision}"


class ReleaseState(StrEnum):
    """How far a release is: RESERVED -> DRAWN -> PUBLISHED, or VOID. In every state it is charged."""

    RESERVED = "RESERVED"
    DRAWN = "DRAWN"
    PUBLISHED = "PUBLISHED"
    VOID = "VOID"

    @property
    def is_under_way(self) -> bool:
        """Whether a run holds the release, or held it and died: RESERVED or DRAWN."""
        return self in (ReleaseState.RESERVED, ReleaseState.DRAWN)


@dataclass(frozen=True)
class StreamTerms:
    """The terms under which a stream is released.

    Attributes:
        grant: The privacy budget. Streams that share one agree on the calendar and on all of the model but
            its resolution, and their spends add up.
        budget_alpha: The alpha that the streams of the budget agree on, where this one, a product of another
            quantity, has an alpha of its own; else None (Lemma 12a, docs/privacy.md).
        stream_share: The share of epsilon that the stream plans with, where it was chosen from public facts;
            None where the operator wrote it.
        hierarchy_hash: Identifies the aggregation tree, or the list of trees by the days on which they hold.
        calendar: How steps are counted, in the caller's words ("30 min, Europe/Paris, elapsed"); equal step
            indices of one privacy budget must mean the same time.
        calibration: "strict"; "paper", the noise scales of the papers, occurs in old ledgers alone.
        document: Other facts worth recording, as JSON text; it may change at any time.
        trees: (first step, hash) of each tree of the list, None as the oldest one's step; the hash is of the
            list up to it, the last one `hierarchy_hash`.
    """

    stream: str
    grant: str
    model: PrivacyModel
    hierarchy_hash: str
    calendar: str
    calibration: str = "strict"
    document: str = "{}"
    trees: Entries = ()
    budget_alpha: Fraction | None = None
    stream_share: Fraction | None = None

    def __post_init__(self) -> None:
        if not self.trees:
            object.__setattr__(self, "trees", ((None, self.hierarchy_hash),))
        if problem := self._problem_of_trees():
            raise ParameterError(f"trees of StreamTerms must {problem}")
        if self.budget_alpha is not None and not self.budget_alpha > 0:
            raise ParameterError("budget_alpha of StreamTerms must be greater than 0")
        if self.stream_share is not None and not 0 < self.stream_share <= 1:
            raise ParameterError("stream_share of StreamTerms must lie in (0, 1]")
        for name in ("stream", "grant", "hierarchy_hash", "calibration", "calendar"):
            check_name(getattr(self, name), f"{name} of StreamTerms")
        try:
            json.loads(self.document)
        except (ValueError, TypeError) as error:
            raise ParameterError("document of StreamTerms must be JSON text") from error

    def _problem_of_trees(self) -> str | None:
        entries: object = self.trees
        if not isinstance(entries, tuple):
            return "be a tuple of (first step, hash), at least one"
        oldest, *later = [step for step, _ in entries]
        if oldest is not None or any(type(step) is not int for step in later):
            return "have None as the first step of the oldest tree, and integers after it"
        if any(second <= first for first, second in pairwise(later)):
            return "have steps that rise"
        return None if entries[-1][1] == self.hierarchy_hash else "end with hierarchy_hash"

    def guarantee(self) -> dict[str, str | int]:
        """Return, by name, the parts that only an amendment changes once the stream has releases."""
        own = {} if self.budget_alpha is None else {"own_alpha": str(self.model.alpha)}
        if self.stream_share is not None:
            own["stream_share"] = str(self.stream_share)
        rest = {name: getattr(self, name) for name in ("hierarchy_hash", "calibration", "calendar")}
        return {"grant": self.grant, **self.budget_model.to_document(), **own, **rest}

    def differing(self, other: "StreamTerms") -> list[str]:
        """Return the names of the parts of the guarantee that differ in later terms, as in `guarantee`."""
        ours, theirs = self.guarantee(), other.guarantee()
        if other.stream_share is None:
            # the operator wrote it, and it may be any that windows have left
            ours.pop("stream_share", None)
        found = [name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)]
        # lists of trees may end alike and begin otherwise
        return found if self.trees == other.trees or "hierarchy_hash" in found else [*found, "hierarchy_hash"]

    @property
    def budget_model(self) -> PrivacyModel:
        """The privacy guarantee with the alpha that the streams of the budget agree on."""
        return self.model if self.budget_alpha is None else replace(self.model, alpha=self.budget_alpha)

    @property
    def alpha_ratio(self) -> Fraction:
        """How much the stream's own alpha is for one of the budget's; nothing changes it after a release."""
        return self.model.alpha / self.budget_model.alpha


@dataclass(frozen=True)
class Reservation:
    """The right to draw and publish one release, until another run takes it over.

    `redraws`: how often an earlier owner died while drawing; destroy the bytes that it left before the draw.
    `is_drawn`: an earlier owner's draw is whole and is used, so that nothing is drawn again.
    """

    key: Key
    fencing_token: int
    redraws: int = 0
    is_drawn: bool = False


@dataclass(frozen=True)
class ReleaseOutline:
    """A release in the ledger, with its last owner, without its charges.

    `drawing`: a draw was begun and is not recorded. `first_step` and `n_steps` are its plan's, `amendment`
    the number of its guarantee. `reason`, `withdrawn`, `compromised` say why it is so.
    """

    stream: str
    period: str
    revision: int
    state: ReleaseState
    owner: str
    lease_until: datetime
    fencing_token: int
    drawing: bool
    redraws: int
    first_step: int
    n_steps: int
    measurements_hash: str | None
    staged_hash: str | None
    published_name: str | None
    reason: str | None
    withdrawn: str | None
    compromised: str | None
    amendment: int

    @property
    def key(self) -> Key:
        """What the ledger's methods name the release by."""
        return Key(self.stream, self.period, self.revision)

    @property
    def end(self) -> int:
        """The running index of the step after the last of the plan."""
        return self.first_step + self.n_steps


@dataclass(frozen=True)
class ReleaseRecord(ReleaseOutline):
    """A release with its charges: of the reserved plan; from DRAWN on, of the draw's outcome."""

    spends: tuple[Spend, ...]


@dataclass(frozen=True)
class ReleaseEvent:
    """An event of a release, or without a period of its stream; `at` is by its writer's clock."""

    at: datetime
    kind: str
    revision: int
    period: str | None = None
    number: int = 0


@dataclass(frozen=True)
class WindowLoss:
    """The most that a window has lost, in the budget's currency: `math.inf` with compromised noise in it."""

    epsilon: Fraction | float
    first_step: int


@dataclass(frozen=True)
class GuaranteeLoss:
    """The worst window under a privacy guarantee, given by its number.

    `free_from`: the first step from which a plan shares no window with the plans under it; None if in force.
    """

    number: int
    guarantee: PrivacyModel
    loss: WindowLoss
    free_from: int | None = None

    @property
    def is_broken(self) -> bool:
        """Whether the window would lose more than the privacy guarantee gives it."""
        return self.loss.epsilon > self.guarantee.budget


def check_name(value: object, name: str) -> None:
    """Raise ParameterError unless `value` is short printable text: the hash chain reads names as lines."""
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_NAME or not value.isprintable():
        raise ParameterError(f"{name} must be printable text of 1 to {LONGEST_NAME} characters")


def check_key(key: Key) -> None:
    """Raise ParameterError unless the key can be a release's."""
    check_name(key.stream, "stream of a release")
    check_name(key.period, "period of a release")
    revision: object = key.revision
    if isinstance(revision, bool) or not isinstance(revision, int) or revision < 0:
        raise ParameterError(f"revision of a release must be an integer of at least 0; got {revision!r}")


def stamp(now: datetime) -> str:
    """Return the instant as UTC text, of one length. Raises ParameterError without a time zone."""
    if not isinstance(now, datetime) or now.tzinfo is None:
        raise ParameterError("now must be a datetime with a time zone, such as datetime.now(UTC)")
    return now.astimezone(UTC).isoformat(timespec="microseconds")


def lease_end(now: datetime, lease: timedelta) -> str:
    """Return when a lease taken now ends. Raises ParameterError unless 0 < lease <= LONGEST_LEASE."""
    if not isinstance(lease, timedelta) or not timedelta(0) < lease <= LONGEST_LEASE:
        raise ParameterError("lease must be a timedelta greater than 0, and of a day at most")
    return stamp(now + lease)
