"""What is wrong with bytes that should be an Avro datum, for whoever wrote the producer; nothing of the content."""

from typing import Final

from sluicegate.validation.rules.avro.datum import MAX_DEPTH, Fault

_WHAT: Final = {
    Fault.ENDS_EARLY: "the data ends within it",
    Fault.TOO_DEEP: f"it lies more than {MAX_DEPTH} levels deep",
    Fault.BAD_VARINT: "a number in it is longer than ten bytes",
    Fault.NO_BOOLEAN: "a boolean is one byte, 0 or 1",
    Fault.NO_INT: "an int has 32 bits",
    Fault.BAD_LENGTH: "its length is negative",
    Fault.NOT_UTF8: "a string in it is not UTF-8",
    Fault.NO_SYMBOL: "the enum has no such symbol",
    Fault.NO_BRANCH: "the union has no such branch",
    Fault.BAD_COUNT: "it counts more items than the data can hold",
    Fault.BLOCK_SIZE: "a block of it is not as long as it says",
}
_WHY_OFTEN = "was it written with this schema?"


def words_for(fault: int, name: str, position: int, size: int) -> str:
    """What a read found at a `position` in `size` bytes; `name`: what the schema calls the type it was at."""
    if fault == Fault.LEFT_OVER:
        return f"is not Avro of its schema: {size - position} bytes stand behind {name}; {_WHY_OFTEN}"
    return f"is not Avro of its schema: {name} cannot be read at byte {position}: {_WHAT[Fault(fault)]}; {_WHY_OFTEN}"
