"""A TOML file of the configuration, read whole and bounded; errors say the place and show no value."""

import os
import re
import tomllib
from pathlib import Path
from typing import Any

from optstream.errors import ConfigurationError

LARGEST_FILE = 2**20
MOST_PARTS = 32
"""Parts of a dotted key; the parser takes quadratic time in them."""
# From the start of a part on, so that a search looks at each letter a bounded number of times.
_DOTTED = re.compile(rb"""(?<![\w-])(?:(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){%d}""" % MOST_PARTS)


def read_toml(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "it cannot be read"
        raise ConfigurationError(
            f"the configuration {path} cannot be read: {reason}; `optstream init` writes an example"
        ) from None
    if len(content) > LARGEST_FILE:
        raise ConfigurationError(f"the configuration {path} must be at most 1 MiB")
    if _DOTTED.search(content):
        raise ConfigurationError(
            f"the configuration {path} must have keys of at most {MOST_PARTS} dotted parts"
        )
    try:
        return tomllib.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(f"the configuration {path} must be UTF-8 text; see line {line}") from None
    except (ValueError, RecursionError) as error:
        # The parser says what it expected and where; it never repeats a value.
        reason = str(error) if isinstance(error, tomllib.TOMLDecodeError) else _reason(error)
        raise ConfigurationError(f"the configuration {path} is not TOML: {reason}") from None


def _reason(error: ValueError | RecursionError) -> str:
    """Why it is no TOML, where the parser left it to Python to say so."""
    return "nested too deeply" if isinstance(error, RecursionError) else "an integer has too many digits"
