"""The benchmark of the bounded program: its peers solve the very same program, and failures are rows."""

from studies.benchmarks.nights import bounded_program
from studies.benchmarks.nights.bounded_program import OURS, main, ours, peer


def test_a_peers_answer_is_ours():
    assert peer("Clarabel", 9)["distance"] < 1e-3
    assert peer("OSQP", 9)["seconds"] > 0  # its own tolerances leave several units


def test_ours_is_certified():
    row = ours(30)
    assert 0 <= row["gap"] < 1e-10
    assert row["KKT residual"] < 1e-6
    assert row["rounds"] >= 1


def test_it_prints_every_size_and_the_slope(capsys, monkeypatch):
    def in_process(*words, **_):
        program, count = words[-2:]
        if program != OURS:
            raise RuntimeError("ModuleNotFoundError: No module named 'hierarchicalforecast'")
        return {**ours(int(count)), "seconds": int(count) / 100, "GiB": 0.1}, 0.0

    monkeypatch.setattr(bounded_program, "in_process", in_process)
    main(["--leaves", "10", "100", "--peers", "10"])
    *rows, slope = capsys.readouterr().out.splitlines()
    assert [row.split()[0] for row in rows[1:]] == [OURS] * 3 + ["OSQP", "Clarabel", "hierarchicalforecast"]
    assert rows[-1].split()[2:] == ["not", "installed"]
    assert slope.endswith("log-log: 1.00")
