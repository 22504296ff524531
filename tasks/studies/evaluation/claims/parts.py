"""Claims about trees, forecasts and what each part contributes: experiments 2 to 4.

Each returns whether it holds in the results, and the sentence with their numbers; KeyError: they do not say.
"""

from optstream.evaluation.contenders import LEVELS_APART, POINTS_ONLY, RAW
from optstream.evaluation.experiments import EPSILONS
from tasks.studies.evaluation.means import Results, short


def hierarchy(results: Results) -> tuple[bool, str]:
    alphas = ("10", "50", "100")

    def of(name: str, metric: str) -> dict[str, float]:
        return {alpha: results.mean(2, name, metric=metric, alpha=alpha).value for alpha in alphas}

    dft, ours = of("DFT", "mae_nation"), of("OptStream ES", "mae_nation")
    regions = {name: of(name, "mae") for name in ("Laplace", "DFT", "OptStream ES")}
    holds = dft["10"] < ours["10"] and ours["50"] < dft["50"] and ours["100"] < dft["100"]
    best = regions["OptStream ES"]
    ahead = all(best[a] < min(regions["DFT"][a], regions["Laplace"][a]) for a in alphas)
    return holds and ahead, (
        f"For the nation DFT is best at α = 10 ({short(dft['10'])} MW against {short(ours['10'])} of "
        "OptStream ES, whose ten points miss the shape), and OptStream ES at α = 50 and 100 "
        f"({short(ours['100'])} against {short(dft['100'])} MW at 100); for a region OptStream ES is ahead "
        f"at each α ({short(best['10'])} against {short(regions['DFT']['10'])} MW at 10)."
    )


def consistent(results: Results) -> tuple[bool, str]:
    names = ("Laplace", "DFT", "OptStream ES", "OptStream L1")
    largest = max(max(results.values(2, "violation", mechanism=name)) for name in names)
    apart = results.mean(2, LEVELS_APART, metric="violation", alpha="10").value
    return largest < 1e-3, (
        f"The largest violation of a sum over all fitted releases is {largest:.1g} MW; "
        f"released level by level and not fitted, sums are off by up to {short(apart)} MW at α = 10."
    )


def forecasts(results: Results) -> tuple[bool, str]:
    real = results.mean(3, RAW, "none").value
    laplace, ours = (
        {epsilon: results.mean(3, name, epsilon=epsilon).value / real for epsilon in EPSILONS}
        for name in ("Laplace", "OptStream ES")
    )
    furthest = max(abs(ratio[epsilon] - 1) for ratio in (laplace, ours) for epsilon in ("1", "0.1"))
    return furthest < 0.1, (
        "That private streams forecast as well as the real one holds, and says little: down to ε = 0.1 an "
        f"ARMA(1,1) misses by {short(real)} MW on the real stream and within {100 * furthest:.1f} % of that "
        f"on OptStream's and on Laplace's alike, at ε = 0.01 by {short(ours['0.01'])} and "
        f"{short(laplace['0.01'])} times as much, for it forgets the day's shape and returns to the mean."
    )


def plain_forecast(results: Results) -> tuple[bool, str]:
    arma, week = (results.mean(3, RAW, "none", metric).value for metric in ("mae", "week_before"))
    lost = results.values(3, "unconverged")
    share = sum(lost) / len(lost)
    return week < arma, (
        "The same day of the week before, repeated, forecasts better than ARMA(1,1) on the real stream "
        f"({short(week)} against {short(arma)} MW); {100 * share:.2g} % of the estimations did not converge, "
        "and were used as they stood."
    )


def ablations(results: Results) -> tuple[bool, str]:
    points, whole = (
        {epsilon: results.mean(4, name, epsilon=epsilon, study="regions").value for epsilon in EPSILONS}
        for name in (POINTS_ONLY, "OptStream ES")
    )
    holds = whole["1"] < points["1"] and points["0.1"] < whole["0.1"] and points["0.01"] < whole["0.01"]
    return holds, (
        "Sampling does the work, the optimisation does not pay for its half of ε: ⟨P,S,∘⟩ misses by "
        f"{short(points['0.1'])} MW at ε = 0.1 and {short(points['0.01'])} at 0.01, ⟨P,S,O⟩ by "
        f"{short(whole['0.1'])} and {short(whole['0.01'])}; only at ε = 1, where points are nearly exact, it "
        f"helps ({short(points['1'])} to {short(whole['1'])})."
    )


def ablations_paper(results: Results) -> tuple[bool, str]:
    where = {"study": "regions", "epsilon": "0.1"}
    plain = results.mean(4, POINTS_ONLY, **where)
    paper = results.mean(4, "OptStream ES", "paper", **where)
    return plain.value < paper.value, (
        f"With the paper's scales, ε = 0.1 costing {paper.epsilon_plan:.3g}, ⟨P,S,O⟩ still misses by "
        f"{short(paper.value)} MW, more than ⟨P,S,∘⟩ at its honest price ({short(plain.value)})."
    )
