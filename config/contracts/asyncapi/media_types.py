"""Parses media types in AsyncAPI documents: the `schemaFormat` of schemas, and the `contentType` of data."""

from collections.abc import Mapping
from typing import Final, NamedTuple

JSON: Final = "json"
AVRO: Final = "avro"
PROTOBUF: Final = "protobuf"
_LANGUAGES: Final = {
    "application/vnd.aai.asyncapi": JSON,
    "application/schema": JSON,
    "application/vnd.apache.avro": AVRO,
    "application/vnd.google.protobuf": PROTOBUF,
}
_SUFFIXES: Final = ("+json", "+yaml")
_OF_PROTOBUF: Final = frozenset({"application/protobuf", "application/x-protobuf", "application/vnd.google.protobuf"})
_OF_AVRO: Final = frozenset(
    {
        *("avro/binary", "application/avro", "application/x-avro", "application/avro-binary"),
        *("application/x-avro-binary", "application/vnd.apache.avro", "application/vnd.apache.avro+binary"),
    }
)
ANY_BINARY: Final = "application/octet-stream"


class MediaType(NamedTuple):
    """A media type without its parameters, and the parameters."""

    name: str
    parameters: Mapping[str, str]


def media_type_of(text: str) -> MediaType:
    """Return the parts of a media type."""
    name, *parameters = (part.strip() for part in text.split(";"))
    pairs = (parameter.partition("=") for parameter in parameters)
    return MediaType(name.lower(), {key.strip().lower(): value.strip().strip('"') for key, _, value in pairs})


def language_of(schema_format: MediaType) -> str | None:
    """Return a schema's language, or None if it is not JSON Schema, Avro or Protobuf."""
    name = schema_format.name
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return _LANGUAGES.get(name)


def data_format_of(content_type: str) -> str | None:
    """Return the format of data, or None if they are not JSON, binary Avro or Protobuf."""
    name = media_type_of(content_type).name
    if name in _OF_AVRO:
        return AVRO
    if name in _OF_PROTOBUF:
        return PROTOBUF
    if "avro" in name:
        return None  # Avro's JSON encoding
    return JSON if name.endswith(("/json", "+json")) else None
