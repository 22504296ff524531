"""The benchmark of sums: bands hold what they say where the covariances are right, and rows are printed."""

import numpy as np

from benchmarks import sum_coverage
from benchmarks.sum_coverage import groups_of, held, main


def test_a_band_by_the_right_covariance_holds_95_percent_and_by_independent_days_far_less():
    """False alarm: 2,000 weeks, each a draw of its own; 95 % within 4 % is eight standard deviations."""
    generator, n_days, n_regions = np.random.default_rng(0), 7, 2
    between_days = 0.8 ** np.abs(np.subtract.outer(range(n_days), range(n_days)))
    between_regions = np.array([[1.0, 0.5], [0.5, 2.0]])
    said = between_days[:, :, None, None] * between_regions
    root = np.linalg.cholesky(np.kron(between_days, between_regions))
    least, whole, alone = np.zeros((n_days, n_regions, n_regions)), [], []
    for _ in range(2000):
        errors = (root @ generator.normal(size=n_days * n_regions)).reshape(n_days, n_regions)
        (ours,), (independent,) = held(errors, said, least, [0, 1], n_days)
        whole.append(ours)
        alone.append(independent)
    assert abs(np.mean(whole) - 0.95) < 0.04
    assert np.mean(alone) < 0.8


def test_every_question_has_its_row(real_data, capsys, monkeypatch):
    monkeypatch.setattr(sum_coverage, "LEARNED_DAYS", 2)
    monkeypatch.setattr(sum_coverage, "SPANS", {"day": 1, "two days": 2})
    main(["--data", str(real_data), "--days", "11", "--epsilon", "1", "--seeds", "1"])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    rows = {" ".join(line[:-3]): int(line[-1]) for line in lines if len(line) > 3 and line[-1].isdigit()}
    expected = {(kind, span) for kind in groups_of(["a"] * 12) for span in ("day", "two days")}
    assert rows.keys() == {f"{kind} {span}" for kind, span in expected}
    assert rows["nation two days"] == 1
