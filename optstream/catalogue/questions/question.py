"""A question to published values: a sliding sum, or whether there was low signal, a jump or a drop."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, get_args

from optstream.errors import ParameterError
from optstream.privacy.exact import exact_from_text

Kind = Literal["sum", "low", "jump", "drop"]
KINDS: tuple[Kind, ...] = get_args(Kind)
LONGEST_NAME = 64
MOST_WINDOW_MINUTES = 31 * 24 * 60
"""A window is at most a month long: each day's answers are made of the days that it reaches."""
MOST_NODES = 2**20


@dataclass(frozen=True)
class Question:
    """What is asked of every window of consecutive steps, of some nodes or of all of one level.

    Attributes:
        name: Printable, 1 to 64 characters.
        kind: "sum" of the window's values; "low" where that sum is at most `bound`; "jump" where the window's
            last value is at least `bound` above its first, "drop" where it is at least `bound` below.
        window: Steps, at least 1, and for a jump or drop at least 2.
        bound: In the unit of the values; for a jump or drop greater than 0; None for a sum.
        nodes: Their names; empty where a level is asked.
        level: All nodes of that depth, the root's 0; None where nodes are named.

    Raises:
        ParameterError: A field is outside its range; names it.
    """

    name: str
    kind: Kind
    window: int
    bound: Fraction | None = None
    nodes: tuple[str, ...] = ()
    level: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.isprintable() or not self.name.strip():
            raise ParameterError("name of a question must be printable text")
        if len(self.name) > LONGEST_NAME:
            raise ParameterError(f"name of a question must have at most {LONGEST_NAME} characters")
        if self.kind not in KINDS:
            raise ParameterError(f"kind of a question must be one of {', '.join(KINDS)}; got {self.kind!r}")
        least = 2 if self.is_difference else 1
        if type(self.window) is not int or not least <= self.window <= MOST_WINDOW_MINUTES:
            raise ParameterError(f"window of a {self.kind} must be at least {least} steps")
        if (self.bound is None) != (self.kind == "sum"):
            raise ParameterError("bound of a question must be given for all but a sum")
        if self.is_difference and self.bound is not None and self.bound <= 0:
            raise ParameterError(f"bound of a {self.kind} must be greater than 0; got {self.bound}")
        if bool(self.nodes) == (self.level is not None):
            raise ParameterError("a question must have one of nodes and level")
        if len(self.nodes) > MOST_NODES or len(set(self.nodes)) < len(self.nodes):
            raise ParameterError("nodes of a question must be named once each")
        if self.level is not None and (type(self.level) is not int or self.level < 0):
            raise ParameterError(
                f"level of a question must be a whole number of at least 0; got {self.level!r}"
            )

    @property
    def is_difference(self) -> bool:
        """Whether its answer is a difference of two values, and not a sum."""
        return self.kind in ("jump", "drop")

    def asks(self, node: str, level: int) -> bool:
        """Return whether the question is to a node.

        Args:
            node: Its name.
            level: Its depth, the root's 0.

        Returns:
            False for a node that is neither named nor on the level.
        """
        return node in self.nodes if self.level is None else level == self.level

    def in_words(self, value_column: str, step_minutes: int) -> str:
        """Return what is asked.

        Args:
            value_column: Name of the published values.
            step_minutes: Length of a step.

        Returns:
            One sentence for data users.
        """
        span = f"{self.window} steps of {step_minutes} minutes"
        change = f"{self.bound} {{}} that {self.window - 1} steps before"
        match self.kind:
            case "sum":
                said = f"The sum of {value_column} over the last {span}"
            case "low":
                said = f"Whether {value_column} adds up to at most {self.bound} over the last {span}"
            case "jump":
                said = f"Whether {value_column} is at least {change.format('above')}"
            case "drop":
                said = f"Whether {value_column} is at least {change.format('below')}"
        who = f"each node of level {self.level}" if self.level is not None else ", ".join(self.nodes[:20])
        return f"{said}, for {who}{' and others' if len(self.nodes) > 20 else ''}."

    def to_document(self) -> dict[str, Any]:
        """Return a JSON-ready document.

        Returns:
            The fields that are given; the bound exact, as text.
        """
        document: dict[str, Any] = {"kind": self.kind, "window": self.window}
        if self.bound is not None:
            document["bound"] = str(self.bound)
        return document | ({"nodes": list(self.nodes)} if self.level is None else {"level": self.level})

    @classmethod
    def from_document(cls, name: str, document: Mapping[str, Any]) -> "Question":
        """Read back what `to_document` wrote, which anyone may have written.

        Args:
            name: Of the question.
            document: Its other fields.

        Returns:
            The question.

        Raises:
            KeyError: A field is missing.
            TypeError: A field is of another type.
            ParameterError: A field is outside its range.
        """
        bound = document.get("bound")
        nodes = document.get("nodes", [])
        if not isinstance(nodes, list) or not all(isinstance(node, str) for node in nodes):
            raise ParameterError("nodes of a question must be a list of names")
        return cls(
            name,
            document["kind"],
            document["window"],
            None if bound is None else _signed(bound),
            tuple(nodes),
            document.get("level"),
        )


def _signed(text: object) -> Fraction:
    """Return an exact number that may be below 0."""
    below = isinstance(text, str) and text.startswith("-")
    return -exact_from_text(str(text)[1:]) if below else exact_from_text(text)
