"""How a replay puts bad times right."""

from enum import StrEnum


class FixTimes(StrEnum):
    """What a time becomes that breaks bounds, as `fix` has it in the proxy's file."""

    NOW = "now"
    CLAMP = "clamp"
    PREVIOUS = "previous"
    UNIT = "unit"
