"""The errors that OptStream raises on purpose.

Every message names the place, the rule that broke and the remedy; none carries a private value.
"""

from datetime import datetime


class OptStreamError(Exception):
    """Base of every error that OptStream raises on purpose."""


class ParameterError(OptStreamError, ValueError):
    """An argument of a public function or a mechanism is outside its legal range."""


class ConfigurationError(OptStreamError):
    """The configuration, or a file that it names, is not usable."""


class DumpError(OptStreamError):
    """A raw dump is structurally unusable: files, columns, types, steps of a leaf or regions."""


class ContractError(OptStreamError):
    """A data contract failed at one of the borders."""


class BudgetError(OptStreamError):
    """A release was refused because some window would cost more than the privacy budget."""


class LedgerError(OptStreamError):
    """The ledger cannot do this in its present state."""


class LedgerUnavailableError(LedgerError):
    """The ledger's database did not answer, or refused for now: the same may be asked again."""


class HeldError(LedgerError):
    """Another run holds the release.

    Args:
        message: For people.
        until: When the other run's lease ends.
    """

    def __init__(self, message: str, until: datetime) -> None:
        super().__init__(message)
        self.until = until


class PublicationError(OptStreamError):
    """The published folder cannot take, or does not hold, these data."""


class NoiseError(OptStreamError):
    """A noise source cannot give the exact noise that was asked of it."""
