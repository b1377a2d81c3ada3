class LaneRoom:
    total_bytes: int
    held_bytes: int
    def __init__(self, total_bytes: int) -> None: ...
