"""All lines, by name, in the order of the table; lines that share a proxy stand together."""

from tests.bounds.line import Line
from tests.bounds.lines.allowed import ALLOWED
from tests.bounds.lines.contents import CONTENTS
from tests.bounds.lines.endings import ENDINGS
from tests.bounds.lines.memory import MEMORY
from tests.bounds.lines.parsing import PARSING
from tests.bounds.lines.rules import RULES
from tests.bounds.lines.turns import TURNS
from tests.bounds.lines.validating import VALIDATING

ALL: list[Line] = [*PARSING, *VALIDATING, *CONTENTS, *RULES, *ALLOWED, *MEMORY, *TURNS, *ENDINGS]
LINES: dict[str, Line] = {line.name: line for line in ALL}
assert len(LINES) == len(ALL), "two lines have one name"
