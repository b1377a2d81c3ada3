"""The languages that schemas are written in."""

from enum import Enum


class SchemaLanguage(Enum):
    """A language by its name in a registry."""

    AVRO = "AVRO"
    JSON = "JSON"
    PROTOBUF = "PROTOBUF"
