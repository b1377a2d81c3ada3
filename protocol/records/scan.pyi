from sluicegate.protocol.records.codecs.codec import Piece
from sluicegate.protocol.records.codecs.decompression import Pieces
from sluicegate.protocol.records.codecs.decompression_budget import Allowance
from sluicegate.protocol.records.rehearsal import Rehearsal

WHOLE: int
BROKEN: int
RAN_OUT: int
LEFT_OVER: int
BAD_LENGTH: int
AMBIGUOUS: int
NULL_KEY: int
OUT_OF_WINDOW: int
EVERY_RECORD: int

OTHER_LENGTH: str
OTHER_OFFSET: str
NEGATIVE_SIZE: str
TOO_MANY_BITS: str

Finding = tuple[int, int, int, int, int, int]

class Cursor:
    data: Piece
    position: int
    end: int
    failed: bool
    source: bytes | memoryview

    def __init__(
        self,
        data: bytes | memoryview,
        position: int,
        end: int,
        pieces: Pieces | None = None,
        allowance: Allowance | None = None,
    ) -> None: ...
    def refill(self) -> bool: ...
    def varint(self) -> int: ...
    def varlong(self) -> int: ...
    def skip(self, size: int) -> None: ...

class Ambiguity:
    why: str
    stated: int
    expected: int

class Findings:
    count: int
    kept: list[Finding]
    first_time: Finding | None

def scan_records(
    data: bytes | bytearray | memoryview,
    start: int,
    end: int,
    count: int,
    framed: bool,
    look_for: int,
    earliest_delta: int,
    window: int,
    exempt_delta: int,
    overflow: int,
    pieces: Pieces | None,
    allowance: Allowance,
    keep: int,
    rehearsal: Rehearsal | None = None,
    strictly: bool = False,
) -> tuple[int, int, int, Findings | Ambiguity | None]: ...
def is_compiled() -> bool: ...
