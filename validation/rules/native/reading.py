"""What native code says of bytes that are plainly good; where it was not compiled, somebody looks closer each time."""

from collections.abc import Callable
from contextlib import suppress

from sluicegate.validation.rules.json.plan import JsonSchemaPlan

_LONGEST_RUN = 32

HAS_NATIVE = False
with suppress(ImportError):
    from sluicegate.validation.rules.json import native as native_json

    HAS_NATIVE = True


def is_ordinary_json(text: bytes, max_depth: int) -> bool:
    """Whether it is JSON in which at most `max_depth` arrays and objects lie within each other; False: look closer."""
    return HAS_NATIVE and native_json.is_ordinary(text, max_depth)


def follows_of(plan: JsonSchemaPlan | None) -> Callable[[bytes], bool]:
    """What says whether bytes plainly follow the plan of a schema; False: look closer."""
    return native_json.OrdinaryJsonSchema(plan).takes if HAS_NATIVE and plan is not None else _fall_back


def is_quickly_read(plan: JsonSchemaPlan) -> bool:
    """Whether few names or words at most have to be compared with one: a schema may be made so that all of them are."""
    return not HAS_NATIVE or native_json.OrdinaryJsonSchema(plan).longest_run <= _LONGEST_RUN


def _fall_back(_data: bytes) -> bool:
    return False
