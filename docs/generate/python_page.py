"""The Python reference: a page for each package, of the names that it makes public."""

from importlib import import_module
from inspect import isclass, isfunction

PACKAGES = (
    "optstream.privacy",
    "optstream.noise",
    "optstream.stream",
    "optstream.measurement",
    "optstream.estimation",
    "optstream.mechanisms",
    "optstream.mechanisms.base",
    "optstream.catalogue",
    "optstream.ledger",
    "optstream.errors",
)
HEAD = """\
# Python

Look up a name, its shapes, errors and cost.

`import optstream` has the names that most programs need; each package has the rest.
"""


def public_names(package: str) -> list[str]:
    """The names in the package's `__all__`, or else its public definitions."""
    module = import_module(package)
    if hasattr(module, "__all__"):
        return list(module.__all__)
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == package]
    return [name for name in own if not name.startswith("_")]


def documented(package: str) -> list[str]:
    """Return the full names of what a page tells: public names, and functions that are methods of a class.

    A method of `Ledger` is a function of a connection, which a call of the method leaves out.
    """
    module, found = import_module(package), []
    for name in public_names(package):
        value = getattr(module, name)
        found.append(f"{package}.{name}")
        methods = [method for key, method in vars(value).items() if key[0] != "_"] if isclass(value) else []
        found += [
            f"{method.__module__}.{method.__qualname__}"
            for method in methods
            if isfunction(method) and "." not in method.__qualname__
        ]
    return found


def python_pages() -> dict[str, str]:
    """Markdown by file name: the packages, and for each a page of directives that mkdocstrings fills."""
    import optstream

    top = [name for name in optstream.__all__ if not name.startswith("_")]
    index = [HEAD, "In `optstream` itself: " + ", ".join(f"`{name}`" for name in top) + ".\n"]
    index += ["| package | content |", "| --- | --- |"]
    pages = {}
    for package in PACKAGES:
        file = f"python/{package.removeprefix('optstream.').replace('.', '-')}.md"
        said = (import_module(package).__doc__ or "").strip()
        index.append(f"| [`{package}`]({file}) | {said.splitlines()[0]} |")
        names = "\n\n".join(f"::: {name}" for name in documented(package))
        pages[file] = f"# {package}\n\n{said}\n\n{names}\n"
    return {"python.md": "\n".join([*index, ""]), **pages}
