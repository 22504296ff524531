"""What `import optstream` offers: one list, known to dir(), to `import *` and to type checkers."""

import ast
import inspect
from pathlib import Path

import pytest

import optstream
from optstream import errors, measurement, mechanisms, noise, stream

STUB = ast.parse(Path(optstream.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
LEFT_OUT = {
    "measurement": {"measure_points_and_sums"},
    "noise": {"Order", "discrete_gaussian", "order_noise"},
    "stream": {
        "BlockSums",
        "FeatureSums",
        "FourierCoordinates",
        "RawState",
        "State",
        "days_from",
        "Hour",
        "day_of",
        "follows",
        "partition_of",
        "period_from",
        "period_from_partition",
        "DatedHierarchy",
        "TreeChange",
        "Unit",
    },
}
"""What mechanisms and configurations are made of, and who uses one need not name."""


@pytest.mark.parametrize("package", [measurement, mechanisms, noise, stream], ids=lambda one: one.__name__)
def test_the_public_names_of_a_package_are_at_the_top(package):
    wanted = set(package.__all__) - LEFT_OUT.get(package.__name__.split(".")[1], set())
    assert wanted - set(optstream.__all__) == set()
    for name in wanted:
        assert getattr(optstream, name) is getattr(package, name)


def test_every_error_is_at_the_top():
    raised = {name for name, value in vars(errors).items() if inspect.isclass(value) and name != "datetime"}
    assert raised - set(dir(optstream)) == set()


def test_nothing_else_is_at_the_top():
    assert set(dir(optstream)) == set(optstream.__all__)
    assert {"Any", "import_module", "lazy_loader"} & set(dir(optstream)) == set()


def test_type_checkers_and_dir_know_the_same_names():
    declared = [(name.name, name.asname) for node in STUB.body for name in node.names]
    assert sorted(name for name, _ in declared) == sorted(optstream.__all__)
    assert all(name == said for name, said in declared)  # `as` makes it public for type checkers


def test_a_name_that_is_not_there_is_refused():
    with pytest.raises(AttributeError, match="release_it"):
        optstream.release_it  # noqa: B018
