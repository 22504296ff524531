"""The configuration: one TOML file, read into frozen settings; errors name key, legal range and input."""

from tasks.config.load import load_settings, stream_files
from tasks.config.schema import Input
from tasks.config.settings import Settings

__all__ = ["Input", "Settings", "load_settings", "stream_files"]
