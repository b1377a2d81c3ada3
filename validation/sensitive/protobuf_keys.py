"""Reads the keys of Protobuf maps as JSON writes them, for each type that keys may have."""

from typing import Any, Final

_CONTINUES: Final = 0x80
_ALL_32, _ALL_64 = (1 << 32) - 1, (1 << 64) - 1
_VARINT, _EIGHT_BYTES, _LENGTH, _FOUR_BYTES = 0, 1, 2, 5


class MapKey:
    """The key of a map.

    `tag` precedes each key; any other fields with its number are unknown fields. `default` is the key of an entry
    without a key.
    """

    def __init__(self, field: Any) -> None:
        self._type = field.type
        self._field = field
        self.is_text = field.type == field.TYPE_STRING
        self._is_fixed = field.type in (
            field.TYPE_FIXED64, field.TYPE_SFIXED64, field.TYPE_FIXED32, field.TYPE_SFIXED32
        )  # fmt: skip
        wide = field.type in (field.TYPE_FIXED64, field.TYPE_SFIXED64)
        fixed = _EIGHT_BYTES if wide else _FOUR_BYTES
        self.tag = field.number << 3 | (_LENGTH if self.is_text else fixed if self._is_fixed else _VARINT)
        self.default = "" if self.is_text else "false" if field.type == field.TYPE_BOOL else "0"

    def text_of(self, data: bytes) -> str:
        """Decode a number or boolean from its wire format, and return it as a string."""
        field, kind = self._field, self._type
        if self._is_fixed:
            is_signed = kind in (field.TYPE_SFIXED64, field.TYPE_SFIXED32)
            return str(int.from_bytes(data, "little", signed=is_signed))
        value = 0
        for i, byte in enumerate(data):
            value |= (byte & (_CONTINUES - 1)) << (7 * i)
        value &= _ALL_64
        if kind == field.TYPE_BOOL:
            return "true" if value else "false"
        if kind in (field.TYPE_INT32, field.TYPE_UINT32, field.TYPE_SINT32):
            value &= _ALL_32
        if kind in (field.TYPE_SINT32, field.TYPE_SINT64):
            return str((value >> 1) ^ -(value & 1))
        if kind in (field.TYPE_INT32, field.TYPE_INT64):
            bits = 32 if kind == field.TYPE_INT32 else 64
            value -= (value >> (bits - 1)) << bits
        return str(value)
