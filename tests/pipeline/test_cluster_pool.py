"""Only one user at a time has a cluster. The next user gets it with its open connections, unless an error occurred."""

import pytest

from sluicegate.pipeline.kafka.cluster import KafkaCluster
from sluicegate.pipeline.kafka.cluster_pool import pooled_cluster
from sluicegate.pipeline.kafka.settings import ClientSettings

_SETTINGS = ClientSettings()


def _used(port: int, settings: ClientSettings = _SETTINGS) -> KafkaCluster:
    with pooled_cluster([("127.0.0.1", port)], settings) as cluster:
        return cluster


def test_the_pool_reuses_a_cluster_for_the_same_brokers_and_settings() -> None:
    first = _used(1001)

    assert _used(1001) is first
    assert _used(1002) is not first
    assert _used(1001, ClientSettings(timeout_seconds=1.0)) is not first


def test_two_users_at_once_get_different_clusters() -> None:
    with (
        pooled_cluster([("127.0.0.1", 1003)], _SETTINGS) as one,
        pooled_cluster([("127.0.0.1", 1003)], _SETTINGS) as other,
    ):
        assert one is not other


def test_a_cluster_is_not_pooled_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), pooled_cluster([("127.0.0.1", 1004)], _SETTINGS) as failed:
        raise ZeroDivisionError

    assert _used(1004) is not failed


def test_the_pool_keeps_only_the_latest_clusters() -> None:
    first = _used(2000)

    for port in range(2001, 2010):
        _used(port)

    assert _used(2000) is not first
