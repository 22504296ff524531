"""What `optstream advise` proposes: for each stream a plan, for streams of one population their shares."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

from tasks.config import Settings
from tasks.planning.advice.candidates import with_stream_share
from tasks.planning.advice.compare_plans import Comparison, Judge, Judged, compare_plans
from tasks.planning.advice.stream_shares import choose_stream_shares, total_of


@dataclass(frozen=True)
class StreamAdvice:
    """Of one stream: what was compared at its present share, and what is proposed.

    written: the share of the population's epsilon in its file. share: that it would plan with. proposed: the
    best plan at that share.
    """

    compared: Comparison
    written: Fraction
    share: Fraction
    proposed: Judged

    @property
    def gain(self) -> float:
        """By which part the error becomes smaller than that of the configured plan."""
        return 1.0 - self.proposed.relative / self.compared.configured.relative

    @property
    def keys(self) -> dict[str, dict[str, Any]]:
        """What to write into the configuration, by table."""
        keys = {table: dict(entries) for table, entries in self.proposed.choice.keys.items()}
        if self.share != self.written:
            keys.setdefault("budget", {})["stream_share"] = str(self.share)
        return keys


@dataclass(frozen=True)
class PlanAdvice:
    """Of all streams that were asked for. overdrawn: what they plan with now, where that is more than all."""

    streams: tuple[StreamAdvice, ...]
    overdrawn: Fraction | None


def advise_plans(streams: Sequence[Settings], scales: Sequence[float | None]) -> PlanAdvice:
    """Propose mechanism, noise and shares from public facts alone: no dump, no ledger; costs no privacy.

    Streams, all of one population, that plan with more than the whole epsilon together are compared at equal
    shares of it. scales: the public size of a typical leaf of each, where its configuration has none. Raises
    ConfigurationError for streams of different populations, or a public size that is missing, ParameterError
    for a configured plan that does not fit.
    """
    total = total_of(streams)
    written = [one.stream_share for one in streams]
    planned = sum(written, Fraction(0))
    if planned > 1:
        streams = [with_stream_share(one, total / len(streams)) for one in streams]
    compared = [compare_plans(one, scale) for one, scale in zip(streams, scales, strict=True)]
    if len(streams) == 1:
        (one,) = compared
        return PlanAdvice((StreamAdvice(one, written[0], written[0], one.best),), None)
    judges = [Judge.of(one, scale) for one, scale in zip(streams, scales, strict=True)]

    def at(place: int, share: Fraction) -> Judged:
        choice = compared[place].best.choice
        return judges[place].judged(replace(choice, settings=with_stream_share(choice.settings, share)))

    def error(place: int, share: Fraction) -> float:
        return at(place, share).relative

    shares = choose_stream_shares([partial(error, place) for place in range(len(streams))], total)
    found = tuple(
        StreamAdvice(one, written[place], share, at(place, share))
        for place, (one, share) in enumerate(zip(compared, shares, strict=True))
    )
    return PlanAdvice(found, planned if planned > 1 else None)


def advice_document(advice: PlanAdvice) -> dict[str, Any]:
    """`optstream advise --json`: versioned, for machines."""
    return {
        "format": "optstream.plan-advice/1",
        "stream_shares_exceed_epsilon": None if advice.overdrawn is None else str(advice.overdrawn),
        "streams": [
            {
                "stream": one.compared.settings.stream.name,
                "stream_share": str(one.share),
                "levels": list(one.compared.levels),
                "proposed": _plan_document(one.proposed),
                "keys": one.keys,
                "gain": one.gain,
                "configured": _plan_document(one.compared.configured),
                "plans": [_plan_document(plan) for plan in one.compared.plans],
            }
            for one in advice.streams
        ],
    }


def _plan_document(plan: Judged) -> dict[str, Any]:
    return {
        "label": plan.choice.label,
        "mechanism": plan.choice.settings.mechanism.name,
        "level_shares": [str(share) for share in plan.level_shares],
        "levels_with_joint_noise": list(plan.joint_levels),
        "expected": [asdict(one) for one in plan.expected],
        "relative_error": plan.relative,
        "warnings": list(plan.warnings),
    }
