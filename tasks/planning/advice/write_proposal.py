"""A configuration with the proposed keys in it, comments and all else as the operator wrote them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomlkit

from optstream.errors import ConfigurationError
from tasks.config import Settings, load_settings
from tasks.config.tables.mechanisms import MECHANISMS, OWN_TABLES


def write_proposal(settings: Settings, keys: Mapping[str, Mapping[str, Any]], path: Path) -> None:
    """Write the configuration of a stream with other keys to a new file beside it; what cannot be loaded is
    not left.

    keys: what to set, by table. A table [mechanism] with a name replaces the old one, and tables that the
    mechanism does not take are left out. A share of the stream takes the place of a chosen one. Raises
    ConfigurationError for another folder, a file that exists, or keys that do not make a configuration.
    """
    if path.absolute().parent != settings.file.parent:
        raise ConfigurationError(
            f"--write {path} must lie in {settings.file.parent}, beside the configuration: its "
            "relative paths start there"
        )
    document = tomlkit.parse(settings.file.read_bytes().decode("utf-8"))
    mechanism = keys.get("mechanism", {})
    if mechanism.get("name", settings.mechanism.name) != settings.mechanism.name:
        for key in [key for key in document["mechanism"] if key not in mechanism]:
            document["mechanism"].remove(key)
    for name, table in keys.items():
        if name in OWN_TABLES or name not in document:
            document[name] = tomlkit.table()
        for key, value in table.items():
            if value is None:
                document[name].pop(key, None)
            elif isinstance(value, Mapping):
                document[name].setdefault(key, tomlkit.inline_table()).update(value)
            else:
                document[name][key] = value
    if "stream_share" in keys.get("budget", {}):
        document["budget"].pop("shared_with", None)  # a number is not chosen
    if mechanism:
        taken = MECHANISMS[mechanism.get("name", settings.mechanism.name)].tables
        for name in OWN_TABLES - set(taken):
            document.pop(name, None)
        if "stages" not in taken or mechanism.get("name"):
            document["budget"].pop("stages", None)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(tomlkit.dumps(document))
    except FileExistsError:
        raise ConfigurationError(f"--write {path} exists already: name a new file") from None
    try:
        load_settings(path)
    except ConfigurationError:
        path.unlink()
        raise
