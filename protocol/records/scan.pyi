WHOLE: int
BROKEN: int
RAN_OUT: int
LEFT_OVER: int
BAD_LENGTH: int
NULL_KEY: int
OUT_OF_WINDOW: int
EVERY_RECORD: int

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
) -> tuple[int, int, int, list[tuple[int, int, int, int, int, int]] | None]: ...
def is_compiled() -> bool: ...
