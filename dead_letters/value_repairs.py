"""Repairs values: with a JSON Patch, or with another schema id in a serializer's prefix."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from hashlib import sha256
from pathlib import Path
from typing import Any

from sluicegate.dead_letters.json_patch import (
    BadPatch,
    ConditionFails,
    PatchFails,
    PatchOperation,
    operations_of,
    patched,
)
from sluicegate.dead_letters.repairs import LetterContent, RepairFailed

_PREFIX_BYTES = 5
_MARKER = b"\0"
_ID_END = 2**31


class BadRepair(Exception):
    """Raised if a repair cannot be used. The message names the file and gives the reason."""


@dataclass(frozen=True, slots=True)
class JsonPatch:
    """A JSON Patch (RFC 6902) for JSON values. It keeps a serializer's prefix with the schema id.

    Records for which a `test` operation fails are skipped.
    """

    name: str
    identity: str
    operations: Sequence[PatchOperation]

    def apply(self, content: LetterContent) -> LetterContent | None:
        value = content.value
        if value is None:
            raise RepairFailed("the value is null")
        prefix = value[:_PREFIX_BYTES] if value.startswith(_MARKER) else b""
        try:
            document = _value_of(value[len(prefix) :])
            text = json.dumps(patched(document, self.operations), ensure_ascii=False, separators=(",", ":"))
            return replace(content, value=prefix + text.encode())
        except ConditionFails:
            return None
        except PatchFails as error:
            raise RepairFailed(str(error)) from error
        except (ValueError, RecursionError):  # UnicodeError is a ValueError
            raise RepairFailed("the value is not JSON that can be written again without a loss") from None


@dataclass(frozen=True, slots=True)
class SchemaId:
    """A repair that replaces the schema id in a serializer's prefix: the byte 0 and the id in four bytes.

    The rest of the value does not change, so it must be readable with the new schema.
    """

    schema_id: int

    @property
    def name(self) -> str:
        return f"schema id {self.schema_id}"

    @property
    def identity(self) -> str:
        return self.name

    def apply(self, content: LetterContent) -> LetterContent:
        value = content.value
        if value is None or len(value) < _PREFIX_BYTES or not value.startswith(_MARKER):
            raise RepairFailed("the value does not begin with a schema id")
        return replace(content, value=_MARKER + self.schema_id.to_bytes(4, "big") + value[_PREFIX_BYTES:])


def read_patch(file: Path) -> JsonPatch:
    """Read a JSON Patch from a file. Raises BadRepair."""
    try:
        text = file.read_bytes()
        operations = operations_of(_value_of(text))
    except OSError as error:
        raise BadRepair(f"{file}: {error.strerror}") from error
    except BadPatch as error:
        raise BadRepair(f"{file}: {error}") from error
    except (ValueError, RecursionError) as error:
        raise BadRepair(f"{file}: not valid JSON ({error})") from error
    return JsonPatch(f"patch {file.name}", f"patch {sha256(text).hexdigest()}", operations)


def schema_id_of(number: int) -> SchemaId:
    """Return the repair that sets this schema id. Raises BadRepair."""
    if not 0 <= number < _ID_END:
        raise BadRepair(f"{number} is no schema id")
    return SchemaId(number)


def _value_of(text: bytes) -> Any:
    """Parse a JSON value. Raises ValueError if the value could not be serialized again without loss."""
    return json.loads(
        text.decode(),
        object_pairs_hook=_object,
        parse_constant=_reject_constant,
        parse_float=_float,
        parse_int=_integer,
    )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has a name twice")
    return found


def _reject_constant(text: str) -> Any:
    raise ValueError(f"{text} is not JSON")


def _float(text: str) -> float:
    number = float(text)
    try:
        is_exact = math.isfinite(number) and Decimal(repr(number)) == Decimal(text)
    except InvalidOperation:  # the exponent has too many digits
        is_exact = False
    if not is_exact:
        raise ValueError("a number has more digits than a double")
    return number


def _integer(text: str) -> int | float:
    return -0.0 if text == "-0" else int(text)
