"""What every table of the configuration file has in common."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A table of the file: frozen, strict about types, refusing unknown keys."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True)
