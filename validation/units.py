"""What a refused timestamp was probably meant to be, in words."""

_UNITS = (("seconds", 1000, 1), ("microseconds", 1, 1_000), ("nanoseconds", 1, 1_000_000))
_PLAUSIBLE_MS = 10 * 365 * 86_400_000
_STEPS = ((86_400_000 * 365, "years"), (86_400_000, "days"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))


def diagnose(timestamp: int, now_ms: int) -> str:
    """A sentence fragment about `timestamp` (claimed ms) as seen at `now_ms`.

    Another unit is named when reading the number in it lands within ten years of now and in milliseconds it does not.
    """
    if timestamp == 0:
        return "is 0, probably never set"
    if timestamp < 0:
        return "is negative, before 1970"
    if abs(timestamp - now_ms) > _PLAUSIBLE_MS:
        for unit, factor, divisor in _UNITS:
            meant = timestamp * factor // divisor
            if abs(meant - now_ms) <= _PLAUSIBLE_MS:
                return f"looks like {unit}: as milliseconds it is {distance(meant, now_ms)}"
    return f"is {distance(timestamp, now_ms)}"


def distance(timestamp: int, now_ms: int) -> str:
    """How far a time is from now, as `0.4 s ago` or `2.0 h ahead`."""
    away = abs(timestamp - now_ms)
    size, unit = next((step for step in _STEPS if away >= step[0]), _STEPS[-1])
    return f"{away / size:.1f} {unit} {'ago' if timestamp <= now_ms else 'ahead'}"
