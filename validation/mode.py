"""The modes of a policy."""

from enum import Enum


class Mode(Enum):
    """What the proxy does with a batch that breaks a rule."""

    REJECT = "reject"  # it is rejected as a broker would
    OBSERVE = "observe"  # it is forwarded as it came, and the violation is reported
    FIX = "fix"  # it is forwarded with other times, and both are reported
    QUARANTINE = "quarantine"  # as reject, and its bad records are written to another topic

    __hash__ = object.__hash__  # members are singletons; Enum's own hash is a Python call
