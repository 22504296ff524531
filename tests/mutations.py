"""Wrong lines that the quick tests must catch: each changes one line of the core, then its tests run.

`make mutations`, or `python -m tests.mutations`: exit code 1 if a change goes unnoticed. Every change is made
in a copy of the checkout; the tests that run are those of `make quick` below the folders that mirror the
changed file.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
COPIED = ("flows", "tasks", "optstream", "data_contracts", "studies", "tests", "docs", "pyproject.toml")
QUICK = "not (server or faults or docs or browser or slow or nightly)"


@dataclass(frozen=True)
class Mutation:
    """One wrong line. what: in words. tests: folders or files; those that mirror the file, if empty."""

    what: str
    file: str
    right: str
    wrong: str
    tests: tuple[str, ...] = ()

    @property
    def asked(self) -> tuple[str, ...]:
        """The tests that should notice."""
        return self.tests or (str(Path("tests", self.file).parent),)


MUTATIONS = (
    Mutation(
        "a covariate's value is used before it is public",
        "optstream/stream/covariate.py",
        "last = min(day, day + 1 - self.lag_days)",
        "last = day",
        ("tests/optstream/mechanisms/history_informed/test_covariates.py",),
    ),
    Mutation(
        "what a covariate did is believed without a prior",
        "optstream/history/covariates.py",
        "np.eye(pulled.size) + ",
        "1e-6 * np.eye(pulled.size) + ",
        ("tests/optstream/history/test_covariate_effect.py",),
    ),
    Mutation(
        "a covariate may be a file of the stream's own input",
        "tasks/trusted/covariates.py",
        "if real.is_relative_to(zone.resolve()):",
        "if key != 'input' and real.is_relative_to(zone.resolve()):",
        ("tests/tasks/trusted/test_public_series.py",),
    ),
    Mutation(
        "levels with blocks of their own do not see what the others take",
        "optstream/privacy/rules.py",
        "            charged[touching] = after\n",
        "",
    ),
    Mutation(
        "a block that all levels share is asked about at one level's charge",
        "optstream/mechanisms/history_informed.py",
        "sum((own.unit_charge for own in kind), Fraction(0))",
        "kind[0].unit_charge if kind else Fraction(0)",
    ),
    Mutation(
        "a plan with joint noise is scaled for a group fewer than a window meets",
        "optstream/mechanisms/joint_groups.py",
        "return worst_sum(layouts, window_length)",
        "return worst_sum(layouts, window_length) - 1",
        ("tests/optstream/mechanisms/test_laplace.py",),
    ),
    Mutation(
        "pieces of blocks that midnight cuts are measured in groups",
        "optstream/mechanisms/blocks.py",
        " if len(part) == blocks.length)",
        ")",
        ("tests/optstream/mechanisms/history_informed/test_joint_blocks.py",),
    ),
    Mutation(
        "a group beside Laplace noise at other levels is asked about at the charge of one of its blocks",
        "optstream/privacy/rules.py",
        "(layers[number].apart, [(one,) for one in own])",
        "(layers[number].apart, [own])",
        ("tests/optstream/mechanisms/test_laplace.py",),
    ),
    Mutation(
        "what a window costs of blocks in groups is looked at from one place of their cycle",
        "optstream/mechanisms/blocks.py",
        "for n in self.period_lengths] for place in places]",
        "for n in self.period_lengths] for place in places[:1]]",
        ("tests/optstream/mechanisms/history_informed/test_joint_blocks.py",),
    ),
    Mutation(
        "days of another plan are taken for the plan's own",
        "optstream/mechanisms/laplace.py",
        "spend.unit_charge > self.unit_charge",
        "False",
        ("tests/optstream/mechanisms/test_laplace.py",),
    ),
    Mutation(
        "a window that cuts two groups of joint noise pays for one",
        "optstream/privacy/spends.py",
        "charged += _most_of_one_part",
        "charged = _most_of_one_part",
    ),
    Mutation(
        "a rest of a day's measurements is a group of its own",
        "optstream/privacy/rules.py",
        "cut_evenly(parts, len(parts) // least)",
        "cut_evenly(parts, -(-len(parts) // least))",
    ),
    Mutation(
        "joint noise where customers change leaf",
        "optstream/privacy/rules.py",
        'return n_nodes == 1 or (model.unit == "customer" and leaves_per_period == 1)',
        "return True",
    ),
    Mutation(
        "joint noise is no dearer for one who may now change leaves",
        "optstream/privacy/amendment.py",
        "case JointSpend() if may_now_move and spend.n_nodes > 1:",
        "case JointSpend() if False:",
    ),
    Mutation(
        "a group is composed as if its smallest part moved",
        "optstream/privacy/spends.py",
        "tuple(max(map(len, group)) for group in self.groups)",
        "tuple(min(map(len, group)) for group in self.groups)",
    ),
    Mutation(
        "no radius of joint noise is drawn anew",
        "optstream/noise/joint.py",
        "return radii, kept.all(axis=1)",
        "return radii, kept.any(axis=1)",
    ),
    Mutation(
        "joint noise for other parts than were priced",
        "optstream/measurement/sums.py",
        "(spend.parts, spend.n_nodes) == (tuple(parts), n_series)",
        "spend.n_nodes == n_series",
    ),
    Mutation(
        "a window too few is searched",
        "optstream/privacy/accountant.py",
        "first = touching.start - window_length + 1",
        "first = touching.start - window_length + 2",
    ),
    Mutation(
        "many steps of a window cost as much as one",
        "optstream/privacy/accountant.py",
        "charged = _charge(known, window_length)",
        "charged = _charge(known, 1)",
        ("tests/optstream/mechanisms/test_pegasus.py",),
    ),
    Mutation(
        "who is in several states at a step has the noise of one",
        "optstream/mechanisms/base.py",
        "return self.model.leaves_per_step * self.model.alpha_units",
        "return self.model.alpha_units",
        ("tests/optstream/mechanisms/test_pegasus.py",),
    ),
    Mutation(
        "the rounding of coordinates is not charged",
        "optstream/privacy/coordinates.py",
        "* square)) + kept * touched",
        "* square))",
        ("tests/optstream/measurement/test_coordinates.py",),
    ),
    Mutation(
        "alpha in units is rounded down",
        "optstream/privacy/model.py",
        "return -((-self.alpha) // self.resolution)",
        "return self.alpha // self.resolution",
    ),
    Mutation(
        "a positive answer is charged half",
        "optstream/privacy/sparse_vector.py",
        "2 * self.n_positive / self.query",
        "self.n_positive / self.query",
        ("tests/optstream/measurement/test_sampling.py",),
    ),
    Mutation(
        "an end of an interval moves the score by half of what it does",
        "optstream/privacy/sparse_vector.py",
        "ends * Fraction(inner, 2)",
        "ends * Fraction(inner, 4)",
        ("tests/optstream/measurement/test_sampling.py",),
    ),
    Mutation(
        "several leaves of a step are charged once",
        "optstream/privacy/spends.py",
        "return self.leaves_changed * self.alpha_units",
        "return self.alpha_units",
    ),
    Mutation(
        "chances are cut off after their first byte",
        "optstream/noise/laplace.py",
        "    while tied.size:\n",
        "    while False:\n",
    ),
    Mutation(
        "a binary digit of the noise has another's chance",
        "optstream/noise/laplace.py",
        "Fraction(2**digit) / Fraction(scale)",
        "Fraction(3**digit) / Fraction(scale)",
    ),
    Mutation(
        "noise of half the scale",
        "optstream/measurement/sums.py",
        "noise.discrete_laplace(float(spend.scale), shape)",
        "noise.discrete_laplace(float(spend.scale) / 2, shape)",
    ),
    Mutation(
        "a spend that does not price its query is taken",
        "optstream/measurement/sums.py",
        "if not priced:",
        "if False:",
    ),
    Mutation(
        "the parts of a query may overlap",
        "optstream/measurement/sums.py",
        "if len(covered) != sum(map(len, parts)) or not covered",
        "if not covered",
    ),
    Mutation(
        "raw values are not clamped",
        "optstream/stream/private_period.py",
        "own = np.clip(units, -largest, largest)",
        "own = units",
    ),
    Mutation(
        "every step may spend a window's epsilon twice",
        "optstream/mechanisms/joint_groups.py",
        "a_charge = self.model.pure_epsilon / self.window_charges",
        "a_charge = 2 * self.model.pure_epsilon / self.window_charges",
    ),
    Mutation(
        "Gaussian noise of a window is charged for half of its steps",
        "optstream/mechanisms/gaussian.py",
        "wanted = self.model.window_length * self.alpha_units**2",
        "wanted = self.model.window_length * self.alpha_units**2 / 2",
        ("tests/optstream/mechanisms/test_gaussian.py",),
    ),
    Mutation(
        "changed steps of a Gaussian sum are charged one by one",
        "optstream/privacy/spends.py",
        "total += np.maximum(inside, 0) ** 2",
        "total += np.maximum(inside, 0)",
    ),
    Mutation(
        "epsilon and rho are added up",
        "optstream/privacy/spends.py",
        "if len(found) > 1:",
        "if len(found) > 2:",
    ),
    Mutation(
        "rho is rounded up",
        "optstream/privacy/zero_concentrated.py",
        "low = Bounds(ROUND_FLOOR)\n    spread = low.divide",
        "low = Bounds(ROUND_CEILING)\n    spread = low.divide",
    ),
    Mutation(
        "Gaussian noise has half its sigma",
        "optstream/noise/gaussian.py",
        "kept = _kept(source, sigma, np.abs(tried))",
        "kept = _kept(source, sigma / 2, np.abs(tried))",
    ),
    Mutation(
        "levels are measured under the whole epsilon each",
        "optstream/mechanisms/hierarchical.py",
        "self.model.with_budget(self.model.budget * share)",
        "self.model.with_budget(self.model.budget)",
    ),
    Mutation(
        "a level's plan is charged to another level",
        "optstream/mechanisms/hierarchical.py",
        "replace(spend, level=level)\n            for level, own",
        "replace(spend, level=0)\n            for level, own",
    ),
    Mutation(
        "a reservation above the budget is granted",
        "optstream/ledger/lifecycle.py",
        "if kept.is_broken:",
        "if False:",
    ),
    Mutation(
        "a live owner draws twice",
        "optstream/ledger/lifecycle.py",
        "if alive and release.drawing:",
        "if False:",
    ),
    Mutation(
        "a draw is begun twice",
        "optstream/ledger/lifecycle.py",
        'require(key, release, ReleaseState.RESERVED, "drawn")\n    if release.drawing:',
        'require(key, release, ReleaseState.RESERVED, "drawn")\n    if False:',
    ),
    Mutation(
        "a draw may cost more than its plan",
        "optstream/ledger/lifecycle.py",
        "if not outcome_is_covered(connection, grant, reserved, outcome):",
        "if False:",
        ("tests/optstream/ledger/test_budget.py",),
    ),
    Mutation(
        "an event's hash leaves out the one before",
        "optstream/ledger/hash_chain.py",
        'f"{stream}\\n{previous}\\n',
        'f"{stream}\\n',
    ),
    Mutation(
        "noise is drawn before the ledger knows",
        "tasks/release/draw.py",
        "    run.ledger.begin_draw(day.reservation, run.clock())\n",
        "",
    ),
    Mutation(
        "readings are not clamped to their bounds",
        "tasks/ingest/clamping.py",
        "units = np.clip(quantise(cut, resolution * scale), limits[0], limits[1])",
        "units = quantise(cut, resolution * scale)",
    ),
)


def noticed_by(mutation: Mutation, again: bool = False) -> str:
    """Return the first quick test that fails once the line is wrong, or "". again: leave it right, for a
    control.
    """
    with tempfile.TemporaryDirectory(prefix="optstream-mutation-") as name:
        copy = Path(name)
        for part in COPIED:
            source = CHECKOUT / part
            if source.is_dir():
                shutil.copytree(source, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, copy / part)
        file = copy / mutation.file
        text = file.read_text(encoding="utf-8")
        file.write_text(text if again else text.replace(mutation.right, mutation.wrong, 1), encoding="utf-8")
        options = ["-x", "-q", "-p", "no:cacheprovider", "-m", QUICK]
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *options, *mutation.asked],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
        )
    if done.returncode not in (0, 1):
        raise RuntimeError(
            f"{mutation.what}: the tests did not run: {done.stdout[-600:]}{done.stderr[-600:]}"
        )
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return "" if done.returncode == 0 else found[1] if found else "a test without a name"


def main(words: Sequence[str] | None = None) -> int:
    """Try all of them, two at a time; return 1 if one is not noticed, or a right line is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="those whose words hold this")
    only = parser.parse_args(words).only
    asked = [mutation for mutation in MUTATIONS if only in mutation.what]
    controls = list({one.asked: one for one in asked}.values())
    with ThreadPoolExecutor(2) as pool:
        tests = list(pool.map(noticed_by, asked))
        # unchanged, the same tests pass
        wrong = list(pool.map(partial(noticed_by, again=True), controls))
    for mutation, test in zip(asked, tests, strict=True):
        print(f"{'caught' if test else 'MISSED':8}{mutation.what}: {mutation.file}; {test}")
    for test in filter(None, wrong):
        print(f"FAILS   unchanged: {test}")
    n_caught, n_right = len(list(filter(None, tests))), wrong.count("")
    print(f"{n_caught} of {len(tests)} caught; unchanged, {n_right} of {len(wrong)} folders pass")
    return 0 if all(tests) and not any(wrong) else 1


if __name__ == "__main__":
    sys.exit(main())
