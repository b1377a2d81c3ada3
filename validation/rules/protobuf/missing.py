"""Which required field is the first that a Protobuf message lacks, without making the list of all of them."""

from typing import Any

from sluicegate.validation.rules.protobuf.cost import is_required

_MOST_LOOKS = 2_000  # about 2 ms
_MOST_LEVELS = 10  # each is looked through once more


def first_missing(message: Any) -> str | None:
    """Return its path, as `lines[3].sku`; None where it lies far within, or behind many others."""
    looks = 0
    waiting: list[tuple[Any, str]] = [(message, "")]
    while waiting:
        part, path = waiting.pop()
        looks += len(part.DESCRIPTOR.fields)
        if looks > _MOST_LOOKS or path.count(".") > _MOST_LEVELS:
            return None
        if not part.IsInitialized():
            for field in part.DESCRIPTOR.fields:
                if is_required(field) and not part.HasField(field.name):
                    return f"{path}{field.name}"
            waiting += reversed(_inner(part, path, _MOST_LOOKS - looks))
    return None


def _inner(message: Any, path: str, most: int) -> list[tuple[Any, str]]:
    """The messages that lie directly within one: the first of them."""
    found: list[tuple[Any, str]] = []
    for field, value in message.ListFields():
        if field.message_type is None or len(found) >= most:
            continue
        name = f"{path}{field.name}"
        if field.message_type.GetOptions().map_entry:
            if field.message_type.fields_by_name["value"].message_type is not None:
                found += [(one, f"{name}[…].") for one, _ in zip(value.values(), range(most), strict=False)]
        elif hasattr(value, "DESCRIPTOR"):
            found.append((value, f"{name}."))
        else:
            found += [(one, f"{name}[{i}].") for i, one in enumerate(value[:most])]
    return found
