"""How far times lie from now, in steps that grow with the distance: four from one power of two to the next.

A step is some fifth of the distance, whether that is seconds or centuries, and 256 of them hold every int64.
"""

STEPS = 256
_SUBDIVISION_BITS = 2
_FINE = 1 << _SUBDIVISION_BITS


def step_of(away_ms: int) -> int:
    """The step that a distance (ms, not negative) lies in."""
    if away_ms < _FINE:
        return away_ms
    power = away_ms.bit_length() - 1
    return _FINE * (power - 1) + ((away_ms >> (power - _SUBDIVISION_BITS)) & (_FINE - 1))


def beginning_of(step: int) -> int:
    """The shortest distance (ms) within a step."""
    if step < _FINE:
        return step
    power, part = step // _FINE + 1, step % _FINE
    return (_FINE + part) << (power - _SUBDIVISION_BITS)
