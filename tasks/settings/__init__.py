"""The configuration: one TOML file, read into frozen settings; errors name key, legal range and input."""

from tasks.settings.loading import load_settings
from tasks.settings.settings import Settings

__all__ = ["Settings", "load_settings"]
