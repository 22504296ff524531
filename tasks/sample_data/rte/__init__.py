"""The yearly files that RTE hands out become daily dumps: read, checked to the line, written."""

from tasks.sample_data.rte.dumps import Imported, rte_configuration, write_loads
from tasks.sample_data.rte.files import RegionLoad, read_load

__all__ = ["Imported", "RegionLoad", "read_load", "rte_configuration", "write_loads"]
