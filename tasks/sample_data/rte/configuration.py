"""The configuration that reads these dumps: the example's, but for two lines."""

import json
import re
from pathlib import Path

from tasks.config.example import EXAMPLE


def changed_lines(dumps: Path) -> tuple[str, str]:
    """Return the lines that differ from the example configuration: one of [stream] and one of [input]."""
    return 'day = "fixed"', f"folder = {json.dumps(str(dumps), ensure_ascii=False)}"


def rte_configuration(dumps: Path) -> str:
    """Return the whole text of a configuration that reads imported dumps, in TOML."""
    text = EXAMPLE
    for line, start in zip(changed_lines(dumps), ('day = "elapsed"', 'folder = "dumps"'), strict=True):
        text = re.sub(f"^{start}.*$", line.replace("\\", r"\\"), text, flags=re.MULTILINE)
    return text
