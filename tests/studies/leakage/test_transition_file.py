"""A chain from CSV: what is read, and what each fault is called."""

import pytest

from optstream.errors import ConfigurationError
from studies.leakage.transition_file import read_transition


@pytest.fixture
def written(tmp_path):
    def write(content):
        path = tmp_path / "M.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "it is empty"),
        ("\n \n", "it is empty"),
        ("0.8,0.2\n0,x\n", "line 2, column 2: a cell must be a plain number of at least 0"),
        ("0.8,0.2\n\n-0,1\n", "line 3, column 1: a cell must be a plain number"),
        ("0.8,0.2\n0,nan\n", "line 2, column 2"),
        ("0.8,0.2\n0,inf\n", "line 2, column 2"),
        ("0.8,0.2\n0,1_0\n", "line 2, column 2"),
        ("0.8,0.2\n0,١\n", "line 2, column 2"),
        ("0.8,0.2\n0," + "1" * 101, "line 2, column 2"),
        ("0.8,0.2\n0\n", "line 2: it must have 2 cells as the first line has; got 1"),
        ("a,b\n0.8,0.2,0\n0,1\n", "line 2: it must have 2 cells as the first line has; got 3"),
        ("0.8,0.2\n", "as many rows as columns.*got 1 rows of 2 columns$"),
        ("0.8,O.2\n0,1\n", "got 1 rows of 2 columns; line 1 was taken as names"),
        ("a,b\n", "got 0 rows of 2 columns"),
        ("0.8;0.2\n0;1\n", "line 2, column 1: a cell must be a plain number"),
        ("a,a\n0.8,0.2\n0,1\n", "line 1, column 2: a state's name .* each name once"),
        ("a,\n0.8,0.2\n0,1\n", "line 1, column 2: a state's name"),
        ("0.8,0.2\n0.5,0.5000001\n", "line 2: the row must add up to 1 within 1e-09.*adds up to 1.0000001"),
        ("1e999,0\n0,1\n", "line 1: the row must add up to 1"),
        ('0.8,"0.2\n0,1\n', "it is not CSV"),
        (b"0.8,0.2\n0,\xff1\n", "line 2: it must be UTF-8"),
        (b"0," * 2**19 + b"0", "at most 1 MiB"),
        (",".join(["0"] * 200 + ["1"]) + "\n", "at most 200"),
        ("\n".join(",".join("1" if i == j else "0" for i in range(201)) for j in range(201)), "at most 200"),
    ],
)
def test_each_fault_has_its_line_and_its_rule(written, content, message):
    path = written(content)
    with pytest.raises(ConfigurationError, match=message) as caught:
        read_transition(path)
    assert str(caught.value).startswith(str(path))
