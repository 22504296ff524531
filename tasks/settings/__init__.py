"""The configuration: one TOML file, read into frozen settings; errors name key, legal range and input."""

from tasks.settings.layouts import Layout
from tasks.settings.loading import load_settings
from tasks.settings.settings import Settings

__all__ = ["Layout", "Settings", "load_settings"]
