"""Draws mutations from a seed: bits, cuts, lengths, repeated or missing pieces, endless varints."""

import random
import struct
from collections.abc import Sequence

_INTERESTING = [
    struct.pack(">i", value) for value in (-1, -2, 0, 1, 127, 128, 255, 65_535, 2**24, 2**31 - 1, -(2**31), 5_000_000)
]
_VARINTS = [b"\xff" * size + b"\x7f" for size in (1, 3, 4, 5, 9, 10, 30)] + [b"\x80" * 6, b"\0", b"\1", b"\x7f"]


def mutate(data: bytes, chance: random.Random, others: Sequence[bytes]) -> bytearray:
    """Apply one to four mutations; `others` are the source of foreign pieces."""
    wounded = bytearray(data)
    for _ in range(1 + (chance.getrandbits(3) > 4) + (chance.getrandbits(3) > 6) * 2):
        _wound(wounded, chance, others)
    return wounded


def _wound(data: bytearray, chance: random.Random, others: Sequence[bytes]) -> None:
    size = len(data)
    at = int(chance.random() * size) if size else 0
    match chance.getrandbits(4):
        case 0 | 1 | 2 | 3 | 4:
            if size:
                data[at] ^= 1 << chance.getrandbits(3)
        case 5 | 6:
            if size:
                data[at] = chance.getrandbits(8)
        case 7:
            del data[at:]
        case 8:
            del data[at : at + 1 + chance.getrandbits(4)]
        case 9:
            data[at : at + 4] = chance.choice(_INTERESTING)
        case 10:
            data[at:at] = chance.choice(_VARINTS)
        case 11:
            data[at : at + 1] = chance.choice(_VARINTS)
        case 12:
            piece = bytes(data[at : at + 1 + chance.getrandbits(5)])
            data[at:at] = piece * (1 + chance.getrandbits(2))
        case 13:
            other = chance.choice(others)
            start = int(chance.random() * len(other)) if other else 0
            data[at : at + 16] = other[start : start + 16]
        case 14:
            data += chance.randbytes(1 + chance.getrandbits(5))
        case _:
            data[at:at] = bytes(chance.getrandbits(6))
