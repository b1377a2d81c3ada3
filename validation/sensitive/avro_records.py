"""Finds the places of sensitive fields in the records of an Avro schema, on first use."""

from collections.abc import Callable, Sequence
from typing import Final

from sluicegate.validation.rules.avro import datum as avro_datum
from sluicegate.validation.rules.avro.plan import DatumPlan
from sluicegate.validation.rules.schemas.field_tags import inline_tags
from sluicegate.validation.sensitive.edits import Nodes, check_not_sensitive, nodes_below
from sluicegate.validation.sensitive.kept import KeptParts
from sluicegate.validation.sensitive.paths import FieldPolicy
from sluicegate.validation.sensitive.tagged import TaggedPlace, policy_of

KINDS_OF_AVRO: Final = {
    avro_datum.BOOLEAN: "a boolean",
    avro_datum.INT: "a number",
    avro_datum.LONG: "a number",
    avro_datum.BYTES: "bytes",
    avro_datum.SIZED: "a number or fixed bytes",
    avro_datum.ENUM: "an enum",
    avro_datum.MAP: "a map; name the map's entries",
    avro_datum.RECORD: "a record; name the record's fields",
}
_FIELD_WORK: Final = 2048


def check_kind(kind: int, nodes: Nodes) -> None:
    """Raise Unmaskable if a value of this kind, which is neither null nor a string, is sensitive."""
    if not (kind == avro_datum.MAP and all(node.passes_maps for node in nodes if node.fields)):
        check_not_sensitive(nodes, KINDS_OF_AVRO[kind])


class AvroRecords:
    """The records in one schema. Thread-safe. `kept` counts them. `numbers` and `root` are the schema's plan."""

    def __init__(self, plan: DatumPlan, policies: Sequence[FieldPolicy], kept: KeptParts) -> None:
        self.numbers = plan.numbers
        self.root = plan.root
        self._plan = plan
        self._policies = tuple(each for each in policies if each.tags)
        self._tagged: dict[int, dict[int, Nodes]] = {}
        self._is_empty: dict[int, bool] = {}
        self._known: dict[tuple[int, Nodes], tuple[tuple[int, Nodes], ...]] = {}
        self._kept = kept

    def fields(self, at: int, nodes: Nodes, worked: Callable[[int], None]) -> tuple[tuple[int, Nodes], ...]:
        """Return the type and the places of each field in the record at `at` in the plan. Omits fields without bytes.

        Raises Unmaskable if a field without bytes is sensitive and not null.
        """
        found = self._known.get((at, nodes))
        if found is None:
            found = tuple(self._found(at, nodes, worked))
            self._kept.size += 1 + len(found)
            self._known[at, nodes] = found
        return found

    def _found(self, at: int, nodes: Nodes, worked: Callable[[int], None]) -> list[tuple[int, Nodes]]:
        numbers = self.numbers
        tags = self._tags(at, worked)
        declared = self._plan.declared[at]["fields"]
        found: list[tuple[int, Nodes]] = []
        for i in range(numbers[at + 1]):
            worked(_FIELD_WORK)
            places = nodes_below(nodes, declared[i]["name"], worked) if nodes else nodes
            if i in tags:
                places += tags[i]
            inner = numbers[at + 2 + i]
            if not self._takes_no_bytes(inner, worked):
                found.append((inner, places))
            elif numbers[inner] != avro_datum.NULL and places:
                check_kind(numbers[inner], places)
                if numbers[inner] == avro_datum.RECORD:
                    self.fields(inner, places, worked)
        return found

    def _tags(self, at: int, worked: Callable[[int], None]) -> dict[int, Nodes]:
        """Return the places of a record's tagged fields, by the position of the field."""
        if not self._policies:
            return {}
        found = self._tagged.get(at)
        if found is None:
            found = {}
            for i, field in enumerate(self._plan.declared[at]["fields"]):
                worked(_FIELD_WORK)
                policy = policy_of(inline_tags(field), self._policies)
                if policy is not None:
                    found[i] = (TaggedPlace((self._plan.names[at], field["name"]), policy),)
            self._tagged[at] = found
        return found

    def _takes_no_bytes(self, at: int, worked: Callable[[int], None]) -> bool:
        found = self._is_empty.get(at)
        if found is None:
            seen: dict[int, bool] = {}
            found = self._has_no_bytes(at, seen, worked)
            self._is_empty.update(seen)
        return found

    def _has_no_bytes(self, at: int, seen: dict[int, bool], worked: Callable[[int], None]) -> bool:
        if at in seen:
            return seen[at]
        worked(_FIELD_WORK)
        kind = self.numbers[at]
        seen[at] = False  # for a record that contains itself: no such datum exists
        if kind == avro_datum.RECORD:
            fields = self.numbers[at + 2 : at + 2 + self.numbers[at + 1]]
            seen[at] = all(self._has_no_bytes(field, seen, worked) for field in fields)
        else:
            seen[at] = kind == avro_datum.NULL or (kind == avro_datum.SIZED and self.numbers[at + 1] == 0)
        return seen[at]
