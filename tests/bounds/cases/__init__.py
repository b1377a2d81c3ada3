"""Lists all cases by name, in the order of the table. Cases that share a proxy are adjacent."""

from tests.bounds.case import Case
from tests.bounds.cases.allowed import ALLOWED
from tests.bounds.cases.contents import CONTENTS
from tests.bounds.cases.endings import ENDINGS
from tests.bounds.cases.memory import MEMORY
from tests.bounds.cases.parsing import PARSING
from tests.bounds.cases.rewriting import REWRITING
from tests.bounds.cases.rules import RULES
from tests.bounds.cases.sensitive import SENSITIVE
from tests.bounds.cases.shared_memory import SHARED_MEMORY
from tests.bounds.cases.validating import VALIDATING

ALL_CASES: list[Case] = [
    *PARSING,
    *VALIDATING,
    *CONTENTS,
    *RULES,
    *SENSITIVE,
    *REWRITING,
    *ALLOWED,
    *MEMORY,
    *SHARED_MEMORY,
    *ENDINGS,
]
CASES: dict[str, Case] = {case.name: case for case in ALL_CASES}
assert len(CASES) == len(ALL_CASES), "two cases have the same name"
