"""What `import optstream` offers."""

import inspect

import optstream
from optstream import errors


def test_every_error_is_at_the_top():
    raised = {name for name, value in vars(errors).items() if inspect.isclass(value) and name != "datetime"}
    assert raised - set(dir(optstream)) == set()
