"""Clusters that the tasks of one process have one after the other: who has just read one of a topic's partitions knows
the leaders of all others, and has connections to them. Of a thousand small partitions that is most of the time.
"""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from sluicegate.pipeline.kafka.cluster import Cluster
from sluicegate.pipeline.kafka.connection import Address
from sluicegate.pipeline.kafka.settings import ClientSettings

_MOST_KEPT = 4

_kept: list[tuple[tuple[tuple[Address, ...], ClientSettings], Cluster]] = []
_changed = threading.Lock()


@contextmanager
def kept_cluster(bootstrap: Iterable[Address], settings: ClientSettings) -> Iterator[Cluster]:
    """A cluster for one user at a time, kept for the next unless something was raised; then nobody knows what state its
    connections are in, and it is closed.
    """
    key = (tuple(bootstrap), settings)
    cluster = _taken(key) or Cluster(*key)
    try:
        yield cluster
    except BaseException:
        cluster.close()
        raise
    with _changed:
        _kept.append((key, cluster))
        oldest = _kept.pop(0)[1] if len(_kept) > _MOST_KEPT else None
    if oldest is not None:
        oldest.close()


def _taken(key: tuple[tuple[Address, ...], ClientSettings]) -> Cluster | None:
    with _changed:
        for place in reversed(range(len(_kept))):
            if _kept[place][0] == key:
                return _kept.pop(place)[1]
    return None
