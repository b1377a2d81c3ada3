"""Pools clusters for the tasks of one process, so that tasks reuse connections and known leaders.

With a thousand small partitions, connecting would take most of the time.
"""

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from sluicegate.pipeline.kafka.cluster import KafkaCluster
from sluicegate.pipeline.kafka.connection import Address
from sluicegate.pipeline.kafka.settings import ClientSettings

_MOST_KEPT = 4

_kept: list[tuple[tuple[tuple[Address, ...], ClientSettings], KafkaCluster]] = []
_changed = threading.Lock()


@contextmanager
def pooled_cluster(bootstrap: Iterable[Address], settings: ClientSettings) -> Iterator[KafkaCluster]:
    """Yield a pooled cluster, which no other task uses until the block ends.

    After an error the cluster is closed, because the state of its connections is unknown. Otherwise it returns to the
    pool.
    """
    key = (tuple(bootstrap), settings)
    cluster = _taken(key) or KafkaCluster(*key)
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


def _taken(key: tuple[tuple[Address, ...], ClientSettings]) -> KafkaCluster | None:
    with _changed:
        for place in reversed(range(len(_kept))):
            if _kept[place][0] == key:
                return _kept.pop(place)[1]
    return None
