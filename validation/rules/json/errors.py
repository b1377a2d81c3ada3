"""What is wrong with bytes that should be JSON, for who wrote the producer: where and what, no content."""

from typing import Final

from sluicegate.validation.rules.json.text import Fault, where, which

_WHAT: Final = {
    Fault.EMPTY: "it is empty",
    Fault.ENDS_EARLY: "it ends before it is complete",
    Fault.NO_VALUE: "a value was expected",
    Fault.NO_KEY: "a key in double quotes was expected",
    Fault.NO_COLON: "a colon was expected",
    Fault.NO_COMMA: "a comma, or the end of the object or array, was expected",
    Fault.LEFT_OVER: "something stands behind the JSON; write one value to a record, and nothing else",
    Fault.TOO_DEEP: "objects and arrays lie deeper within each other than the rule allows",
    Fault.CONTROL_CHARACTER: "a string holds a control character; escape it",
    Fault.BAD_ESCAPE: "a string holds an escape that is none of JSON's",
    Fault.NOT_UTF8: "a string is not UTF-8; encode it so",
    Fault.BAD_NUMBER: "a number is not written as JSON has it",
    Fault.BYTE_ORDER_MARK: "it begins with a byte order mark; leave that out",
}


def words_for(fault: int) -> str:
    """`fault` as `fault_in` told it."""
    return f"not JSON: {_WHAT[which(fault)]} (at byte {where(fault)})"
