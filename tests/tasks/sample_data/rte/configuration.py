"""The configuration that reads RTE's dumps: the example's, but for the two lines that the command names."""

import re
from pathlib import Path

from tasks.config.example import EXAMPLE
from tasks.sample_data.rte import changed_lines


def rte_configuration(dumps: Path) -> str:
    """The whole text of a configuration whose input folder is `dumps`."""
    text = EXAMPLE
    for line, pattern in zip(changed_lines(dumps), (r"^day = .*$", r'^folder = "dumps"$'), strict=True):
        text, n_changed = re.subn(pattern, line.replace("\\", r"\\"), text, flags=re.MULTILINE)
        assert n_changed == 1, pattern
    return text
