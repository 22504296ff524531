"""What stands in the place of a function that fails, or at which the process dies."""


class Death(BaseException):
    """It is not an Exception: nothing may catch it and tidy up."""


def raising(error):
    """Return a function that raises this, whatever it is given."""

    def fails(*_given, **_named):
        raise error

    return fails
