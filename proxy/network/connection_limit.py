"""Computes how many connections the system's limit on open descriptors allows."""

import resource

from sluicegate.config.limits import Limits

# The number of descriptors for listeners, files, handshakes and the proxy's own connections.
_OTHER_DESCRIPTORS = 40
_DESCRIPTORS_OF_A_CONNECTION = 2
_SHARE_FOR_OTHERS = 8
_MANY = 1 << 20


def most_connections(limits: Limits) -> int:
    """Return `limits.max_connections` or, if it is not set, the number that the descriptor limit allows."""
    if limits.max_connections is not None:
        return limits.max_connections
    descriptors, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return connections_within(descriptors)


def connections_within(descriptors: int) -> int:
    """Return the number of clients that `descriptors` allow."""
    if descriptors in (resource.RLIM_INFINITY, 0) or descriptors > _MANY:
        descriptors = _MANY
    others = max(_OTHER_DESCRIPTORS, descriptors // _SHARE_FOR_OTHERS)
    return max(1, (descriptors - others) // _DESCRIPTORS_OF_A_CONNECTION)


def descriptors_for(connections: int) -> int:
    """Return the number of descriptors that `connections` clients need."""
    theirs = connections * _DESCRIPTORS_OF_A_CONNECTION
    return max(theirs + _OTHER_DESCRIPTORS, -(-theirs * _SHARE_FOR_OTHERS // (_SHARE_FOR_OTHERS - 1)))
