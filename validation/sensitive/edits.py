"""Replacements of sensitive strings within one value, and what is checked at the place of each."""

from sluicegate.validation.sensitive.paths import Action, Place, SensitiveFields

Nodes = tuple[Place, ...]


class Unmaskable(Exception):
    """A value cannot be masked, or has a field that is not allowed; the text quotes nothing from it. `fields`: the
    policy that it violates; None: the value cannot be parsed, so all of them.
    """

    def __init__(self, text: str, fields: SensitiveFields | None = None) -> None:
        super().__init__(text)
        self.fields = fields


class Edits:
    """The replacements in the order of their places. `names`: the policies by which bytes change."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._edits: list[tuple[int, int, bytes]] = []

    @property
    def count(self) -> int:
        """The number of replacements so far."""
        return len(self._edits)

    def replace(self, start: int, end: int, new: bytes, fields: SensitiveFields) -> None:
        """Replace the bytes from `start` to `end`, after all earlier replacements."""
        self._edits.append((start, end, new))
        self.names.add(fields.name)

    def growth(self, since: int) -> int:
        """Return by how many bytes the replacements after the first `since` lengthen the value."""
        return sum(len(new) - (end - start) for start, end, new in self._edits[since:])

    def put_length(self, since: int, start: int, end: int, new: bytes) -> None:
        """Replace a length that is before the replacements after the first `since`."""
        self._edits.insert(since, (start, end, new))

    def applied(self, data: bytes) -> bytes:
        """Return the value with all replacements, the same object if there are none."""
        if not self._edits:
            return data
        parts: list[bytes] = []
        copied = 0
        for start, end, new in self._edits:
            parts += (data[copied:start], new)
            copied = end
        return b"".join((*parts, data[copied:]))


def fields_of(nodes: Nodes) -> SensitiveFields | None:
    """Return the policy of a place; None if it is not sensitive."""
    return next((node.fields for node in nodes if node.fields is not None), None)


def below(nodes: Nodes, name: str) -> Nodes:
    """Return the nodes of a name."""
    return tuple(each for node in nodes for each in node.named(name))


def check_string(nodes: Nodes, fields: SensitiveFields) -> None:
    """Raise Unmaskable if a sensitive string is not allowed."""
    if fields.action is Action.REJECT:
        raise Unmaskable(f"{_shown(nodes, fields)} is not allowed in this topic; leave it out", fields)


def check_other(nodes: Nodes, kind: str) -> None:
    """Raise Unmaskable if a value that is no string is sensitive. `kind`: with its article."""
    fields = fields_of(nodes)
    if fields is not None:
        check_string(nodes, fields)
        raise Unmaskable(f"{_shown(nodes, fields)} is {kind}, and only strings can be masked; send a string", fields)


def _shown(nodes: Nodes, fields: SensitiveFields) -> str:
    """Return the path in the configuration or the schema, never a name from the record."""
    return "the field " + next(".".join(node.path) for node in nodes if node.fields is fields)
