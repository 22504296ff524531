"""Public names say in Google style what they do: a sentence, then Args, Returns and Raises."""

import ast
import builtins
import inspect
import pkgutil
import re
import sys
from collections import defaultdict
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path

import griffe
import pytest

import optstream
from docs.generate.python_page import PACKAGES, public_names
from optstream import errors

Sections = griffe.DocstringSectionKind
ROOT = Path(__file__).parents[2]
FIRST_LINE = "begins with no sentence of one line"


def packages():
    """What the reference has a page of, and every other package of optstream that says what is public."""
    below = [
        name for _, name, is_package in pkgutil.walk_packages(optstream.__path__, "optstream.") if is_package
    ]
    return sorted(
        {"optstream", *PACKAGES, *(name for name in below if hasattr(import_module(name), "__all__"))}
    )


def is_checked(value):
    module = getattr(value, "__module__", None) or ""
    return module.startswith("optstream.")


def listed(value):
    """What each section of a docstring lists, by its kind: names of parameters, or of errors."""
    text, found = inspect.cleandoc(value.__doc__ or ""), defaultdict(list)
    for section in griffe.Docstring(text).parse("google", returns_multiple_items=False, warnings=False):
        entries = section.value if isinstance(section.value, list) else []
        found[section.kind] += [getattr(entry, "name", None) or str(entry.annotation) for entry in entries]
    return found


def wrong_in_text(value):
    """What is wrong whatever the docstring is of: its first line, or an error that does not exist."""
    first = (value.__doc__ or "").split("\n")[0]
    known = {
        *vars(builtins),
        *vars(errors),
        *vars(sys.modules.get(getattr(value, "__module__", None), errors)),
    }
    wrong = [] if first.endswith(".") and first == first.strip() else [FIRST_LINE]
    return wrong + [
        f"Raises has {name}, no error" for name in listed(value)[Sections.raises] if name not in known
    ]


def wrong_in_function(function, *, is_method=False, overrides=False):
    """What a function's docstring lacks; a method that overrides another has the rest from there."""
    signature, told = inspect.signature(function), listed(function)
    given = list(signature.parameters)
    named = [name.lstrip("*") for name in told[Sections.parameters]]
    wrong = wrong_in_text(function) + [
        f"Args has {name}, no parameter" for name in named if name not in given
    ]
    if overrides:
        return wrong
    wrong += [f"Args lacks {name}" for name in given[is_method:] if name not in named]
    returns_something = signature.return_annotation not in (None, "None", inspect.Signature.empty)
    has_returns = Sections.returns in told or Sections.yields in told
    return wrong if has_returns or not returns_something else [*wrong, "Returns is missing"]


def wrong_in_fields(kind):
    """What a class' docstring lacks: a field, or what `__init__` takes, of which a class above may tell."""
    texts = [one for above in kind.__mro__ for one in (above, vars(above).get("__init__")) if one]
    sections = (Sections.parameters, Sections.attributes)
    named = {name for text in texts for section in sections for name in listed(text)[section]}
    given = list(getattr(kind, "_fields", ()))
    if is_dataclass(kind):
        given = [field.name for field in fields(kind) if field.init]
    elif inspect.isfunction(vars(kind).get("__init__")) and not getattr(kind, "_is_protocol", False):
        given = list(inspect.signature(kind).parameters)
    return [f"Args and Attributes lack {name}" for name in given if name not in named]


def wrong_in_members(kind):
    """What a class' sentence, methods and properties lack."""
    wrong = wrong_in_text(kind)
    for name, member in vars(kind).items():
        found = []
        if isinstance(member, property | cached_property):
            found = wrong_in_text(member)
        elif isinstance(member, staticmethod | classmethod) or inspect.isfunction(member):
            overrides = any(name in vars(above) for above in kind.__mro__[1:])
            is_method = not isinstance(member, staticmethod)
            found = wrong_in_function(
                getattr(member, "__func__", member), is_method=is_method, overrides=overrides
            )
        wrong += [f"{name}: {what}" for what in found if name[0] != "_"]
    return wrong


def wrong_in(value):
    """What a public function lacks; or a class, its methods and those of each class of ours above it."""
    if inspect.isfunction(value):
        return [f"{value.__name__}: {what}" for what in wrong_in_function(value)]
    members = {one.__name__: wrong_in_members(one) for one in value.__mro__ if is_checked(one)}
    found = [f"{name}: {what}" for name, wrong in members.items() for what in wrong]
    return found + [f"{value.__name__}: {what}" for what in wrong_in_fields(value)]


@pytest.mark.parametrize("package", packages())
def test_every_public_docstring_has_its_sections(package):
    public = [getattr(import_module(package), name) for name in public_names(package)]
    told = [value for value in public if inspect.isfunction(value) or inspect.isclass(value)]
    assert not sorted({what for value in told if is_checked(value) for what in wrong_in(value)})


def halve(number: int, rounded: bool) -> int:
    """Return half.

    Args:
        number: Which.
        digits: How many.

    Raises:
        RoundingError: Never.
    """


@dataclass
class Pair:
    """Two numbers.

    Args:
        one: The first.
    """

    one: int
    other: int

    @property
    def total(self):
        """The sum, of which the sentence
        goes on.
        """

    def plus(self, number: int) -> "Pair":
        """Return the pair with a number added.

        Args:
            number: Added to both.

        Returns:
            Another pair.
        """


class Ordered(Pair):
    """Two numbers, the smaller one first."""

    def plus(self, number: int) -> "Pair":
        """Return the pair in the same order."""

    def minus(self, number: int) -> "Pair":
        """Return the pair with a number taken off."""


def test_what_a_docstring_lacks_is_found():
    """Control: a parameter that is left out, one that is not there, Returns, an error, a sentence."""
    assert wrong_in_function(halve) == [
        "Raises has RoundingError, no error",
        "Args has digits, no parameter",
        "Args lacks rounded",
        "Returns is missing",
    ]
    assert wrong_in_fields(Pair) == ["Args and Attributes lack other"]
    assert wrong_in_members(Pair) == [f"total: {FIRST_LINE}"]
    assert wrong_in_members(Ordered) == ["minus: Args lacks number", "minus: Returns is missing"]


MAY_BEGIN_WITH_A_LIST = re.compile(r'"""\s*[a-z_][\w, ]*: ')
"""Only such a file is parsed: a docstring of ours begins with three quotes."""


def begins_with_a_list(text):
    """Whether a docstring begins with what its fields or arguments are, and not with a sentence."""
    return re.match(r"[a-z_][\w, ]*: ", text) is not None


def test_every_docstring_of_the_product_begins_with_a_sentence():
    places = [
        f"{file.relative_to(ROOT)}: {text.splitlines()[0]}"
        for package in ("optstream", "tasks", "flows", "data_contracts", "docs", "studies")
        for file in (ROOT / package).rglob("*.py")
        if MAY_BEGIN_WITH_A_LIST.search(source := file.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and begins_with_a_list(text := ast.get_docstring(node) or "A sentence.")
    ]
    assert places == []
    assert begins_with_a_list("rows: one for each file. noise, model: null where the file does not say.")
