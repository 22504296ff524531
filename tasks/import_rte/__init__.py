"""The yearly files that RTE hands out become daily dumps: read, checked to the line, written."""

from tasks.import_rte.configuration import changed_lines, rte_configuration
from tasks.import_rte.days import Imported, write_loads
from tasks.import_rte.files import RegionLoad, read_load

__all__ = ["Imported", "RegionLoad", "changed_lines", "read_load", "rte_configuration", "write_loads"]
