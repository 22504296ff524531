"""What was found, written by hand, one sentence each; numbers are filled in, and each claim is checked.

A finding holds or does not, in the results at hand; the page of the long run is not made with one that does
not. Other results (simulated, short) say so beside the sentence.
"""

from collections.abc import Callable
from dataclasses import dataclass

from tasks.studies.evaluation.claims import learned, parameters, parts, regions
from tasks.studies.evaluation.means import Results

Claim = Callable[[Results], tuple[bool, str]]
"""Whether it holds in these results, and the sentence with their numbers. KeyError: they do not say."""


@dataclass(frozen=True)
class Finding:
    """experiment: whose. title: what is asked. verdict: what this finding answers. claim: checked."""

    experiment: int
    title: str
    verdict: str
    claim: Claim


def check(results: Results, finding: Finding) -> tuple[bool | None, str]:
    """Whether it holds, and the sentence; None where the results lack what it speaks of."""
    if finding.experiment not in results.experiments():
        return None, ""
    try:
        return finding.claim(results)
    except KeyError:
        return None, ""


FINDINGS: tuple[Finding, ...] = (
    Finding(
        1,
        "OptStream against noise on every step",
        "better from ε = 0.1 down, worse at 1",
        regions.against_laplace,
    ),
    Finding(1, "better by an order of magnitude", "does not reproduce", regions.no_order_of_magnitude),
    Finding(
        1,
        "L1 sampling against equal spacing",
        "behind, but for the paper's scales at 0.01",
        regions.l1_behind,
    ),
    Finding(1, "very small ε", "only what learns is worth releasing every day", regions.sample_at_the_end),
    Finding(1, "nothing but last week's release", "worse at ε = 0.1, as good at 0.01", regions.last_week),
    Finding(1, "an independent trial", "agrees", regions.independent_trial),
    Finding(1, "learning from past releases", "ahead of all others at each ε", learned.against_all),
    Finding(1, "bands of 95 %", "hold 93 to 97 %", learned.bands),
    Finding(2, "national and regional error", "OptStream where α is large", parts.hierarchy),
    Finding(2, "sums are consistent", "holds", parts.consistent),
    Finding(2, "learning from past releases", "ahead at each α, nation and regions", learned.on_the_tree),
    Finding(3, "private streams forecast accurately", "holds, and so it does with Laplace", parts.forecasts),
    Finding(3, "ARMA(1,1) as the measure", "last week's day is better", parts.plain_forecast),
    Finding(
        3, "forecasts from what was learned", "as good as on the real stream, down to 0.01", learned.forecasts
    ),
    Finding(
        4,
        "every step of the procedure helps",
        "sampling does; the optimisation only at ε = 1",
        parts.ablations,
    ),
    Finding(4, "the same with the paper's scales", "neither", parts.ablations_paper),
    Finding(5, "k and θ", "k falls with ε; θ hardly matters", parameters.grid),
    Finding(6, "larger α", "OptStream ahead of Laplace and DFT", parameters.alphas),
    Finding(
        6, "larger α, learning from past releases", "less than half of OptStream's error", learned.alphas
    ),
    Finding(7, "PeGaSus", "behind under one promise", parameters.pegasus),
    Finding(8, "Theorem 11", "holds, loose", parameters.theorem),
    Finding(
        9, "Kalman filter, adaptive rate", "the filter helps; adapting depends on the series", parameters.fast
    ),
    Finding(9, "FAST against Laplace", "depends on the series", parameters.fast_laplace),
    Finding(9, "learning from past releases", "pays where something repeats", learned.counted),
    Finding(10, "every year, from the first day", "ahead at each ε", learned.years),
    Finding(10, "bands of 95 %", "hold 93 to 97 %", learned.years_covered),
    Finding(10, "revised estimates", "nearer to the truth, at no cost", learned.revised),
    Finding(11, "days unlike all others", "below 1.5 times OptStream's error", learned.unusual),
    Finding(11, "the first day", "no worse than OptStream's", learned.beginnings),
)
