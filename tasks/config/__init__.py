"""The configuration: one TOML file, read into frozen settings; errors name key, legal range and input."""

from tasks.config.loading import load_settings
from tasks.config.settings import Settings
from tasks.config.tables.layouts import Layout
from tasks.config.tables.population import stream_files

__all__ = ["Layout", "Settings", "load_settings", "stream_files"]
