"""The configuration that reads these dumps: the example's, but for two lines."""

import json
import re
from pathlib import Path

from optstream.errors import ParameterError
from tasks.config.example import EXAMPLE


def changed_lines(dumps: Path) -> tuple[str, str]:
    """Return the lines that differ from the example configuration: one of [stream] and one of [input]."""
    return 'day = "fixed"', f"folder = {json.dumps(str(dumps), ensure_ascii=False)}"


def rte_configuration(dumps: Path) -> str:
    """Return the whole text of a configuration that reads imported dumps, in TOML."""
    text = EXAMPLE
    for line, pattern in zip(changed_lines(dumps), (r"^day = .*$", r'^folder = "dumps"$'), strict=True):
        text, n_changed = re.subn(pattern, line.replace("\\", r"\\"), text, flags=re.MULTILINE)
        if n_changed != 1:
            raise ParameterError(f"the example must have one line like {pattern}; it has {n_changed}")
    return text
