class Totals:
    records: int
    earliest: int
    latest: int
    null_keys: int
    bytes: int

def read_totals(data: memoryview, position: int, end: int, count: int, base_timestamp: int) -> Totals: ...
