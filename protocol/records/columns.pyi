from typing import Any

Buffer = Any  # a writable buffer of int64, or of what the function's docstring says

class Columns:
    def __init__(
        self,
        offset: Buffer,
        timestamp: Buffer,
        key_at: Buffer,
        key_size: Buffer,
        value_at: Buffer,
        value_size: Buffer,
        headers_at: Buffer,
        headers_size: Buffer,
    ) -> None: ...

def read_columns(
    data: memoryview,
    position: int,
    end: int,
    count: int,
    base_offset: int,
    base_timestamp: int,
    columns: Columns,
    row: int,
) -> int: ...
def gather(
    data: memoryview,
    starts: Buffer,
    sizes: Buffer,
    first: int,
    count: int,
    ends: Buffer,
    values: Buffer,
    filled: int,
) -> int: ...
def read_headers(data: memoryview, position: int, end: int) -> list[tuple[bytes, bytes | None]] | None: ...

class Totals:
    records: int
    earliest: int
    latest: int
    null_keys: int
    bytes: int

def read_totals(data: memoryview, position: int, end: int, count: int, base_timestamp: int) -> Totals: ...
