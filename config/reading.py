"""Makes sections of a file's data, by pydantic, which finds the validators in each kind's annotation."""

from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, TypeAdapter, ValidationError

from sluicegate.config.model import Config
from sluicegate.config.reference.json_schema_kinds import Schema

_Section = TypeVar("_Section")
# To make one takes a while.
_READERS: dict[type[Any], TypeAdapter[Any]] = {}


class NotWhatIsWanted(ValueError):
    """The data is no such section; `details` holds pydantic's account of each reason."""

    def __init__(self, error: ValidationError) -> None:
        super().__init__(str(error))
        self.details: list[Any] = list(error.errors(include_url=False))


def config_of(data: Any) -> Config:
    """A whole configuration. Raises NotWhatIsWanted."""
    return read_section(Config, data)


def read_section(section: type[_Section], data: Any) -> _Section:
    """One section alone. Raises NotWhatIsWanted."""
    try:
        return _reader_of(section).validate_python(data)  # type: ignore[no-any-return]  # a cache forgets the type
    except ValidationError as error:
        raise NotWhatIsWanted(error) from None


def json_schema_of(section: type[Any]) -> Schema:
    """The kinds that it takes, in JSON Schema."""
    return _reader_of(section).json_schema(by_alias=True)


def _reader_of(section: type[Any]) -> TypeAdapter[Any]:
    if section not in _READERS:
        _READERS[section] = TypeAdapter(Annotated[Config, AfterValidator(_checked)] if section is Config else section)
    return _READERS[section]


def _checked(config: Config) -> Config:
    config.check()
    return config
