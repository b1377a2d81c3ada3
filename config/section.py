"""What every section of the configuration file is: frozen once read, without keys that nobody knows."""

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """Keys that stand together."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=False)
