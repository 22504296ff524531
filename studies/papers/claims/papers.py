"""Claims about the papers' mechanisms: experiments 1 to 9."""

from typing import Any

from studies.evaluation.contenders import INFORMED, LEVELS_APART, POINTS_ONLY, RAW
from studies.evaluation.experiment import MONTHS
from studies.evaluation.experiments import COUNTED_STEPS, EPSILONS
from studies.papers.means import ALPHAS, Results, below

LAPLACE, DFT, ES, L1 = "Laplace", "DFT", "OptStream ES", "OptStream L1"
SCALES = ("strict", "paper")
COUNTS, THRESHOLDS = (5, 10, 20), ("500", "1000", "2000", "5000", "10000")
SERIES = [(span, epsilon) for span in COUNTED_STEPS for epsilon in ("1", "0.1")]
INDEPENDENT_TRIAL = {
    (LAPLACE, "strict"): {"1": 48, "0.1": 481, "0.01": 3950},
    (ES, "paper"): {"1": 102, "0.1": 163, "0.01": 1157},
    ("OptStream ES, paper's weights", "strict"): {"0.1": 233, "0.01": 1938},
}
"""MW a step in February, by somebody else's program."""
Checked = tuple[bool, dict[str, Any]]


def against_laplace(of: Results) -> Checked:
    laplace, ours = of.by(1, LAPLACE), of.by(1, ES)
    months = set(of.rows(1)["span"]) & set(MONTHS)
    pairs = [(of.by(1, LAPLACE, span=month), of.by(1, ES, span=month)) for month in months]
    holds = all(plain["1"] < es["1"] and below(es, plain, ("0.1", "0.01")) for plain, es in pairs)
    return holds, {"ours": ours, "laplace": laplace}


def no_order_of_magnitude(of: Results) -> Checked:
    rivals = [of.by(1, name) for name in (LAPLACE, DFT)]
    ours = [of.by(1, name, scales) for name in (ES, L1) for scales in SCALES]
    best = max(rival[e] / own[e] for rival in rivals for own in ours for e in EPSILONS)
    return best < 10, {"best": best, "cost": of.mean(1, ES, "paper", epsilon="1").epsilon_plan}


def independent_trial(of: Results) -> Checked:
    off = max(
        abs(of.mean(1, *who, epsilon=epsilon, span=MONTHS[0]).value / known - 1)
        for who, figures in INDEPENDENT_TRIAL.items()
        for epsilon, known in figures.items()
    )
    return off < 0.05, {"off": off}


def l1_behind(of: Results) -> Checked:
    es, l1 = ([of.by(1, name, scales) for scales in SCALES] for name in (ES, L1))
    strict, paper = (behind["0.01"] / ahead["0.01"] for ahead, behind in zip(es, l1, strict=True))
    worse = all(below(ahead, behind, ("1", "0.1")) for ahead, behind in zip(es, l1, strict=True))
    return worse and strict > 1, {"strict": strict, "paper": paper}


def sample_at_the_end(of: Results) -> Checked:
    sample, ours, learned = (of.by(1, name)["0.01"] for name in ("Sample", ES, INFORMED))
    raw = of.mean(1, RAW, "none", "last_week").value
    return learned < raw < sample < ours, {"sample": sample, "ours": ours, "learned": learned, "raw": raw}


def last_week(of: Results) -> Checked:
    today, week = of.by(1, ES), of.by(1, ES, metric="last_week")
    holds = today["0.1"] < week["0.1"] and week["0.01"] < 1.1 * today["0.01"]
    return holds, {"today": today, "week": week}


def hierarchy(of: Results) -> Checked:
    dft, ours = (of.by(2, name, metric="mae_nation", alpha=ALPHAS) for name in (DFT, ES))
    plain, region_dft, region = (of.by(2, name, alpha=ALPHAS) for name in (LAPLACE, DFT, ES))
    nation = dft["10"] < ours["10"] and below(ours, dft, ("50", "100"))
    holds = nation and below(region, region_dft) and below(region, plain)
    return holds, {"dft": dft, "ours": ours, "region": region, "region_dft": region_dft}


def consistent(of: Results) -> Checked:
    largest = max(max(of.values(2, "violation", mechanism=name)) for name in (LAPLACE, DFT, ES, L1))
    apart = of.mean(2, LEVELS_APART, metric="violation", alpha="10").value
    return largest < 1e-3, {"largest": largest, "apart": apart}


def forecasts(of: Results) -> Checked:
    real = of.mean(3, RAW, "none").value
    laplace, ours = ({e: value / real for e, value in of.by(3, name).items()} for name in (LAPLACE, ES))
    furthest = max(abs(ratio[epsilon] - 1) for ratio in (laplace, ours) for epsilon in ("1", "0.1"))
    return furthest < 0.1, {"real": real, "furthest": furthest, "laplace": laplace, "ours": ours}


def plain_forecast(of: Results) -> Checked:
    arma, week = (of.mean(3, RAW, "none", metric).value for metric in ("mae", "week_before"))
    lost = of.values(3, "unconverged")
    return week < arma, {"arma": arma, "week": week, "lost": sum(lost) / len(lost)}


def ablations(of: Results) -> Checked:
    points, whole = (of.by(4, name, study="regions") for name in (POINTS_ONLY, ES))
    return whole["1"] < points["1"] and below(points, whole, ("0.1", "0.01")), {
        "points": points,
        "whole": whole,
    }


def ablations_paper(of: Results) -> Checked:
    plain = of.mean(4, POINTS_ONLY, study="regions", epsilon="0.1").value
    paper = of.mean(4, ES, "paper", study="regions", epsilon="0.1")
    return plain < paper.value, {"plain": plain, "paper": paper.value, "cost": paper.epsilon_plan}


def grid(of: Results) -> Checked:
    best = {e: min((of.mean(5, ES, epsilon=e, n_samples=k).value, k) for k in COUNTS) for e in EPSILONS}
    l1 = {
        e: min(of.mean(5, L1, epsilon=e, n_samples=k, threshold=t).value for k in COUNTS for t in THRESHOLDS)
        for e in EPSILONS
    }
    ours, k = ({e: best[e][part] for e in EPSILONS} for part in (0, 1))
    return k["1"] >= k["0.1"] >= k["0.01"] and below(ours, l1), {"ours": ours, "k": k, "l1": l1}


def alphas(of: Results) -> Checked:
    laplace, dft, ours = (of.by(6, name, alpha=ALPHAS) for name in (LAPLACE, DFT, ES))
    return below(ours, laplace) and below(ours, dft), {"laplace": laplace, "dft": dft, "ours": ours}


def pegasus(of: Results) -> Checked:
    laplace, theirs, ours = (of.by(7, name) for name in (LAPLACE, "PeGaSus", ES))
    paper = of.mean(7, "PeGaSus", "paper", epsilon="1")
    figures = {"ours": ours, "theirs": theirs, "paper": paper.value, "cost": paper.epsilon_plan}
    return below(ours, theirs) and laplace["1"] < ours["1"], figures


def theorem(of: Results) -> Checked:
    counts = sorted(set(of.rows(8)["n_samples"]))

    def found(metric: str, epsilon: str, k: int) -> float:
        return of.mean(8, POINTS_ONLY, metric=metric, epsilon=epsilon, n_samples=k).value

    # it bounds an expectation: a mean of some thousand draws may lie above it by what chance allows
    holds = all(found("mae", e, k) <= 1.01 * found("bound", e, k) for e in EPSILONS for k in counts)
    best = {e: min((found("mae", e, k), k) for k in counts)[1] for e in EPSILONS}
    first = {e: found("suggested_bound", e, counts[0]) for e in EPSILONS}
    usual = {e: found("suggested_bound_usual", e, counts[0]) for e in EPSILONS}
    return holds, {"best": best, "first": first, "usual": usual}


def fast(of: Results) -> Checked:
    adaptive, fixed, linear = (
        {(span, e): min(of.values(9, "relative", mechanism=name, span=span, epsilon=e)) for span, e in SERIES}
        for name in ("Fast", "Fast, fixed", "Fast, fixed, linear")
    )
    filtered = sum(fixed[one] < linear[one] for one in SERIES)
    ratio = {one: adaptive[one] / fixed[one] for one in SERIES}
    holds = all(ratio["unemployment", e] < 1 < ratio["load", e] for e in ("1", "0.1"))
    return holds and filtered > len(SERIES) / 2, {"filtered": filtered, "of": len(SERIES), "ratio": ratio}


def fast_laplace(of: Results) -> Checked:
    where = {"metric": "relative", "epsilon": "1"}
    plain = {span: of.mean(9, LAPLACE, span=span, **where).value for span in ("flu", "load")}
    best = {span: min(of.values(9, mechanism="Fast, fixed", span=span, **where)) for span in plain}
    return plain["flu"] < best["flu"] and best["load"] < plain["load"], {"plain": plain, "best": best}
