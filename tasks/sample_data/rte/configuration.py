"""The configuration that reads these dumps: the example's, but for two lines."""

import json
from pathlib import Path

from tasks.config.example import EXAMPLE, changed


def changed_lines(dumps: Path) -> tuple[str, str]:
    """Return the lines that differ from the example configuration: one of [stream] and one of [input]."""
    return 'day = "fixed"', f"folder = {json.dumps(str(dumps), ensure_ascii=False)}"


def rte_configuration(dumps: Path) -> str:
    """Return the whole text of a configuration that reads imported dumps, in TOML."""
    day, folder = (line.replace("\\", r"\\") for line in changed_lines(dumps))
    return changed(changed(EXAMPLE, r"^day = .*$", day), r'^folder = "dumps"$', folder)
