"""Determines, on first use, how a walk over Protobuf handles each field at places of sensitive fields."""

from collections.abc import Callable, Sequence
from enum import Enum, IntEnum, auto
from functools import partial
from typing import Any, Final

from sluicegate.validation.rules.schemas.field_tags import protobuf_tags
from sluicegate.validation.sensitive.edits import (
    Nodes,
    Unmaskable,
    check_not_sensitive,
    check_string,
    fields_of,
    nodes_below,
)
from sluicegate.validation.sensitive.kept import KeptParts
from sluicegate.validation.sensitive.paths import FieldPolicy
from sluicegate.validation.sensitive.protobuf_keys import MapKey
from sluicegate.validation.sensitive.tagged import TaggedPlace, policy_of

STRING_VALUE: Final = "google.protobuf.StringValue"
_ANY: Final = "google.protobuf.Any"
_MOST_FIELD: Final = (1 << 29) - 1
_UNKNOWN_WORK: Final = 1024
_FIELD_WORK: Final = 16 * 1024  # with the field's options


class WireType(IntEnum):
    """The wire type: the lowest three bits of a tag."""

    VARINT = 0
    EIGHT_BYTES = 1
    LENGTH = 2
    GROUP = 3
    END_GROUP = 4
    FOUR_BYTES = 5


class WalkStep(Enum):
    """A step that a walk takes after a tag. The comments give the step's argument in parentheses."""

    SKIP_VARINT = auto()
    SKIP = auto()  # (the number of bytes)
    SKIP_LENGTH = auto()
    STRING = auto()  # (the policy) replaces a string
    MESSAGE = auto()  # (MessageFields) walks over a message or a map entry
    MAP = auto()  # (Map) walks over a map entry, depending on its key
    GROUP = auto()  # (MessageFields)
    END_GROUP = auto()
    REFUSE = auto()  # (a function that raises Unmaskable)
    FAIL = auto()


Step = tuple[WalkStep, Any]
_FAIL: Final[Step] = (WalkStep.FAIL, None)
_END_GROUP: Final[Step] = (WalkStep.END_GROUP, None)
_SCALARS: Final[dict[int, Step]] = {
    WireType.VARINT: (WalkStep.SKIP_VARINT, None),
    WireType.EIGHT_BYTES: (WalkStep.SKIP, 8),
    WireType.FOUR_BYTES: (WalkStep.SKIP, 4),
}


class MessageFields(dict[int, Step]):
    """The steps for a message type at some places, by tag. `kind` is None for a group that is not in the schema.

    Only tags of the schema's fields are cached. For a map entry, `entry_nodes` are the places of its value.
    """

    def __init__(self, schema: "ProtobufMessages", kind: Any, nodes: Nodes, is_entry: bool = False) -> None:
        super().__init__()
        self._schema = schema
        self._kind = kind
        self._nodes = nodes
        self._is_entry = is_entry

    def step_for(self, tag: int, worked: Callable[[int], None]) -> Step:
        """Return the step after a tag. Raises Unmaskable for the message set format."""
        number, wire_type = tag >> 3, tag & 7
        if not 0 < number <= _MOST_FIELD:
            return _FAIL
        if wire_type == WireType.END_GROUP:
            return _END_GROUP
        worked(_UNKNOWN_WORK)
        field = None if self._kind is None else self._field(number)
        if field is None:
            return self._schema.unknown_step(wire_type)
        worked(_FIELD_WORK)
        nodes = self._nodes if self._is_entry else self._schema.nodes_of(field, self._nodes, worked)
        found = self[tag] = self._schema.step(field, wire_type, nodes)
        self._schema.kept.size += 1
        return found

    def _field(self, number: int) -> Any:
        kind = self._kind
        if self._is_entry:
            value = kind.fields_by_name["value"]
            return value if number == value.number else None
        if kind.GetOptions().message_set_wire_format:
            raise Unmaskable("the schema has a message set, in which fields cannot be found")
        field = kind.fields_by_number.get(number)
        if field is None and kind.is_extendable:
            try:
                return kind.file.pool.FindExtensionByNumber(kind, number)
            except KeyError:
                return None
        return field


class Map:
    """A map at some places. `key` reads its keys. `skipped` contains the steps that skip an entry's fields."""

    def __init__(self, schema: "ProtobufMessages", kind: Any, nodes: Nodes) -> None:
        self.nodes = nodes
        self.key = MapKey(kind.fields_by_name["key"])
        self.skipped = schema.unknown
        self._schema = schema
        self._kind = kind
        self._by_tag = tuple(node for node in nodes if node.passes_maps and node.fields)

    def check(self) -> None:
        """Raise Unmaskable if the map is sensitive as a whole."""
        if len(self._by_tag) < sum(node.fields is not None for node in self.nodes):
            check_not_sensitive(
                tuple(node for node in self.nodes if node not in self._by_tag), "a map; name the map's entries"
            )

    def fields_of(self, name: str, worked: Callable[[int], None]) -> MessageFields:
        """Return the steps for the entry with this key."""
        return self._schema.fields(self._kind, nodes_below(self.nodes, name, worked) + self._by_tag, is_entry=True)


class ProtobufMessages:
    """The messages in one schema. `kept` counts their fields. Thread-safe."""

    def __init__(self, policies: Sequence[FieldPolicy], kept: KeptParts) -> None:
        self._policies = tuple(each for each in policies if each.tags)
        self._known: dict[tuple[str, Nodes, bool], MessageFields] = {}
        self._tagged: dict[str, Nodes] = {}
        self.kept = kept
        self.unknown = MessageFields(self, None, ())

    def fields(self, kind: Any, nodes: Nodes, is_entry: bool = False) -> MessageFields:
        """Return the steps for a message at `nodes`, or for a map entry whose value is there."""
        key = kind.full_name, nodes, is_entry
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = MessageFields(self, kind, nodes, is_entry)
            self.kept.size += 1
        return found

    def nodes_of(self, field: Any, nodes: Nodes, worked: Callable[[int], None]) -> Nodes:
        """Return the places of a field in a message at `nodes`."""
        inner = nodes
        if nodes:
            inner = nodes_below(nodes, field.full_name if field.is_extension else field.name, worked)
            if field.containing_type.full_name == STRING_VALUE:
                inner += tuple(node for node in nodes if node.fields is not None)
        return inner + self._tags(field) if self._policies else inner

    def _tags(self, field: Any) -> Nodes:
        name = str(field.full_name)
        nodes = self._tagged.get(name)
        if nodes is None:
            policy = policy_of(protobuf_tags(field), self._policies)
            nodes = self._tagged[name] = () if policy is None else (TaggedPlace((name,), policy),)
        return nodes

    def unknown_step(self, wire_type: int) -> Step:
        """Return the step for a field that is not in the schema."""
        if wire_type == WireType.LENGTH:
            return WalkStep.SKIP_LENGTH, None
        if wire_type == WireType.GROUP:
            return WalkStep.GROUP, self.unknown
        return _SCALARS.get(wire_type, _FAIL)

    def step(self, field: Any, wire_type: int, nodes: Nodes) -> Step:
        """Return the step for a field at `nodes`."""
        inner = field.message_type
        if wire_type == WireType.LENGTH:
            if inner is not None:
                return self._message_step(inner, nodes)
            if field.type == field.TYPE_STRING:
                fields = fields_of(nodes)
                if fields is None:
                    return WalkStep.SKIP_LENGTH, None
                return _unless_refused((WalkStep.STRING, fields), partial(check_string, nodes, fields))
            kind = "bytes" if field.type == field.TYPE_BYTES else "a number"
            return _unless_refused((WalkStep.SKIP_LENGTH, None), partial(check_not_sensitive, nodes, kind))
        if wire_type == WireType.GROUP:
            is_known = inner is not None and field.type == field.TYPE_GROUP
            group = self.fields(inner, nodes) if is_known else self.unknown
            if inner is None:
                return WalkStep.GROUP, group
            return _unless_refused(
                (WalkStep.GROUP, group), partial(check_not_sensitive, nodes, "a message; name its fields")
            )
        step = _SCALARS.get(wire_type, _FAIL)
        if inner is not None or field.type == field.TYPE_STRING:
            return step
        return _unless_refused(step, partial(check_not_sensitive, nodes, "a number, a boolean or an enum"))

    def _message_step(self, kind: Any, nodes: Nodes) -> Step:
        if kind.GetOptions().map_entry:
            if not nodes:
                return WalkStep.MESSAGE, self.fields(kind, (), is_entry=True)
            found = Map(self, kind, nodes)
            return _unless_refused((WalkStep.MAP, found), found.check)
        return _unless_refused((WalkStep.MESSAGE, self.fields(kind, nodes)), partial(_check_message, kind, nodes))


def _unless_refused(step: Step, check: Callable[[], None]) -> Step:
    try:
        check()
    except Unmaskable:
        return WalkStep.REFUSE, check
    return step


def _check_message(kind: Any, nodes: Nodes) -> None:
    """Raise Unmaskable if a message is sensitive as a whole, or may contain sensitive fields that cannot be found."""
    fields = fields_of(nodes)
    if kind.full_name != STRING_VALUE:
        check_not_sensitive(nodes, "a message; name its fields")
    elif fields is not None:
        check_string(nodes, fields)
    if kind.full_name == _ANY:
        inner = next((node for node in nodes if node.has_nested_places), None)
        if inner is not None:
            path = ".".join(inner.path)
            raise Unmaskable(f"the field {path} is a {_ANY}, in which sensitive fields cannot be found; leave it out")
