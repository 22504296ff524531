"""The yearly files that RTE hands out become daily dumps: read, checked to the line, written."""

from tasks.sample_data.rte.days import Imported, changed_lines, write_loads
from tasks.sample_data.rte.files import RegionLoad, read_load

__all__ = ["Imported", "RegionLoad", "changed_lines", "read_load", "write_loads"]
