"""What all benchmarks measure and print with."""

import pytest

from optstream.errors import ParameterError
from studies.benchmarks.harness import measure
from studies.benchmarks.harness.measure import command, fastest, in_process, in_words, parser, timed
from tests.failing import raising


def test_units_of_time_are_chosen_to_be_read():
    assert [in_words(value) for value in (2.5, 0.0025, 2.5e-6)] == ["2.50 s", "2.50 ms", "2.50 µs"]


def test_a_result_comes_with_what_it_took():
    taken, result = timed(lambda: sum(range(1000)))
    assert result == 499500
    assert min(taken) >= 0
    calls = iter(range(3))
    assert fastest(lambda: next(calls), 3)[1] == 2
    assert next(calls, None) is None


def test_a_process_gives_its_document_and_its_errors():
    document, seconds = in_process("-c", "import os; print(os.environ['NUMBER'])", NUMBER="7")
    assert document == 7
    assert seconds > 0
    with pytest.raises(RuntimeError, match="no such thing"):
        in_process("-c", "import sys; sys.exit('no such thing')")


def test_a_thread_that_ends_meanwhile_has_no_children(monkeypatch, tmp_path):
    monkeypatch.setattr(measure.Path, "iterdir", lambda _: iter([tmp_path / "ended"]))
    assert measure.living_children() == []


def test_the_environment_stands_in_for_data(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("OPTSTREAM_DATA", str(tmp_path))
    assert parser("", data=True).parse_args([]).data == tmp_path
    monkeypatch.delenv("OPTSTREAM_DATA")
    assert parser("", data=False).parse_args([]).data is None
    with pytest.raises(SystemExit):
        parser("", data=True).parse_args([])
    assert "--data" in capsys.readouterr().err


def test_an_error_is_one_line(capsys):
    with pytest.raises(SystemExit) as ended:
        command(raising(ParameterError("name another folder")))
    assert ended.value.code == 2
    assert capsys.readouterr().err == "error: name another folder\n"
