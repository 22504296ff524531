"""Claims about what is learned from past releases: HistoryInformed in experiments 1 to 3, 6 and 9 to 11."""

from studies.evaluation.contenders import (
    CONTENDERS,
    INFORMED,
    INFORMED_BLOCKS,
    INFORMED_JOINT,
    INFORMED_WEATHER,
    JOINT_NOISE,
    RAW,
)
from studies.evaluation.data import FEBRUARY, JUNE
from studies.evaluation.experiments import EPSILONS
from studies.evaluation.happenings import HAPPENINGS
from studies.evaluation.streams import FIRST, REVISED_AFTER
from studies.papers.claims.papers import ES, LAPLACE, SERIES, Checked
from studies.papers.means import ALPHAS, Results, below

ASKED = {"1": 39, "0.1": 105, "0.01": 215}
AIMED = {"1": 36, "0.1": 90, "0.01": 180}
"""MW a step over the three months: what was asked for before anything was built, and what was hoped for."""
WITH_ALL_PARTS = {"1": 22, "0.1": 65, "0.01": 140}
"""Likewise, of joint noise, weather and the choice of blocks together."""
LEAST_COVERED, MOST_COVERED = 0.93, 0.97
MOST_WORSE = 1.5
YEARS = (2013, 2014, 2015, 2016)


def against_all(of: Results) -> Checked:
    ours = of.by(1, INFORMED)
    next_best = [
        min((of.mean(1, name, epsilon=e).value, name) for name in of.rivals(1, epsilon=e)) for e in EPSILONS
    ]
    others = {e: value for e, (value, _) in zip(EPSILONS, next_best, strict=True)}
    names = {e: name for e, (_, name) in zip(EPSILONS, next_best, strict=True)}
    reached = [f"ε = {e}" for e in EPSILONS if ours[e] <= AIMED[e]]
    holds = below(ours, others) and all(ours[e] <= ASKED[e] for e in EPSILONS)
    return holds, {
        "ours": ours, "others": others, "names": names, "asked": ASKED, "aimed": AIMED, "reached": reached
    }  # fmt: skip


def bands(of: Results, experiment: int = 1) -> Checked:
    covered = of.by(experiment, INFORMED, metric="covered")
    holds = all(LEAST_COVERED <= share <= MOST_COVERED for share in covered.values())
    return holds, {"covered": covered}


def on_the_tree(of: Results) -> Checked:
    nation, region = (of.by(2, INFORMED, metric=metric, alpha=ALPHAS) for metric in ("mae_nation", "mae"))
    best_nation, best_region = (
        {a: min(of.mean(2, name, metric=metric, alpha=a).value for name in of.rivals(2)) for a in ALPHAS}
        for metric in ("mae_nation", "mae")
    )
    return below(nation, best_nation) and below(region, best_region), {
        "nation": nation, "best_nation": best_nation, "region": region, "best_region": best_region
    }  # fmt: skip


def forecasts(of: Results) -> Checked:
    real = of.mean(3, RAW, "none").value
    ours, week = of.by(3, INFORMED), of.by(3, INFORMED, metric="week_before")
    laplace = of.mean(3, LAPLACE, epsilon="0.01").value
    holds = all(ours[e] < 1.1 * real for e in EPSILONS) and below(week, ours) and ours["0.01"] < laplace
    return holds, {"ours": ours, "week": week, "laplace": laplace}


def alphas(of: Results) -> Checked:
    ours, peer = of.by(6, INFORMED, alpha=ALPHAS), of.by(6, ES, alpha=ALPHAS)
    return all(2 * ours[a] < peer[a] for a in ALPHAS), {"ours": ours, "peer": peer}


def counted(of: Results) -> Checked:
    ours, others = (
        {
            (span, e): min(of.values(9, "relative", mechanism=names, span=span, epsilon=e))
            for span, e in SERIES
        }
        for names in ({INFORMED_BLOCKS}, set(CONTENDERS) - {INFORMED_BLOCKS, RAW})
    )
    holds = below(ours, others, (("load", "1"), ("load", "0.1"))) and ours["flu", "1"] > others["flu", "1"]
    return holds, {"ours": ours, "others": others}


def years(of: Results) -> Checked:
    ahead = all(
        below(of.by(10, INFORMED, metric=f"mae_{year}"), of.by(10, name, metric=f"mae_{year}"))
        for year in YEARS
        for name in (LAPLACE, ES)
    )
    drawn = {e: of.mean(10, INFORMED, epsilon=e).epsilon_drawn or 0.0 for e in EPSILONS}
    paid = all(drawn[e] <= float(e) * (1 + 1e-9) for e in EPSILONS)
    return ahead and paid, {"whole": of.by(10, INFORMED)}


def years_covered(of: Results) -> Checked:
    single = [value for year in YEARS for value in of.values(10, f"covered_{year}", mechanism=INFORMED)]
    holds, figures = bands(of, 10)
    return holds, figures | {"least": min(single), "most": max(single)}


def revised(of: Results) -> Checked:
    once = of.by(10, INFORMED, metric="revised_0")
    again = [of.by(10, INFORMED, metric=f"revised_{after}") for after in REVISED_AFTER]
    gains = {e: [100 * (1 - later[e] / once[e]) for later in again] for e in EPSILONS}
    return all(min(gains[e]) > 0 for e in EPSILONS) and gains["0.01"][-1] > 5, {"gains": gains}


def unusual(of: Results) -> Checked:
    whats = [what for happening in HAPPENINGS for what in (happening, f"{happening}, after")]
    ours, peer = ({what: of.by(11, name, metric=what) for what in whats} for name in (INFORMED, ES))
    worst, what, epsilon = max((ours[what][e] / peer[what][e], what, e) for what in whats for e in EPSILONS)
    return worst <= MOST_WORSE, {"most": MOST_WORSE, "worst": worst, "what": what, "epsilon": epsilon}


def beginnings(of: Results) -> Checked:
    ours, peer = of.by(11, INFORMED, metric=FIRST), of.by(11, ES, metric=FIRST)
    return all(ours[e] <= peer[e] for e in EPSILONS), {"ours": ours, "peer": peer}


def parts(of: Results) -> Checked:
    laplace, joint = of.by(12, LAPLACE), of.by(12, JOINT_NOISE)
    given, apart, ours, weather = (
        of.by(12, name) for name in (INFORMED_BLOCKS, INFORMED, INFORMED_JOINT, INFORMED_WEATHER)
    )
    return below(joint, laplace) and below(ours, apart), {
        "laplace": laplace, "joint": joint, "given": given, "apart": apart, "ours": ours, "weather": weather
    }  # fmt: skip


def parts_asked(of: Results) -> Checked:
    best = {e: min(of.by(12, INFORMED_JOINT)[e], of.by(12, INFORMED_WEATHER)[e]) for e in EPSILONS}
    missed = all(best[e] > WITH_ALL_PARTS[e] for e in EPSILONS)
    return missed, {"best": best, "asked": WITH_ALL_PARTS}


def winter(of: Results) -> Checked:
    months = [of.by(12, INFORMED_WEATHER, span=span.name) for span in (FEBRUARY, JUNE)]
    plain = [of.by(12, INFORMED_JOINT, span=span.name) for span in (FEBRUARY, JUNE)]
    ratio, before = (one[0]["0.01"] / one[1]["0.01"] for one in (months, plain))
    return ratio < before, {"ratio": ratio, "before": before}
