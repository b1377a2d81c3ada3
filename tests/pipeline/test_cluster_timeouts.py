"""Requests to a cluster are retried until a timeout."""

from unittest.mock import Mock

import pytest

from sluicegate.pipeline.kafka import cluster as cluster_module
from sluicegate.pipeline.kafka.cluster import KafkaCluster, RetryRequest
from sluicegate.pipeline.kafka.connection import BrokerUnreachable
from sluicegate.pipeline.kafka.settings import ClientSettings


@pytest.fixture
def cluster_with_short_timeout(monkeypatch: pytest.MonkeyPatch) -> KafkaCluster:
    """Return a cluster with a timeout of 0 s, as for a user who may have specified a wrong address."""
    monkeypatch.setattr(cluster_module, "_PAUSE_SECONDS", 0.0)
    return KafkaCluster([], ClientSettings(), timeout_seconds=0.0)


def test_a_retriable_error_is_retried_despite_a_short_timeout(cluster_with_short_timeout: KafkaCluster) -> None:
    """The last leader of a thousand new partitions takes longer than the timeout for an address."""
    responses: list[Exception] = [RetryRequest("t-999: NOT_LEADER_OR_FOLLOWER (6)")] * 3

    def leader_that_responds() -> str:
        if responses:
            raise responses.pop()
        return "leads"

    def raise_unreachable() -> str:
        raise BrokerUnreachable("127.0.0.1:9: rejected")

    assert cluster_with_short_timeout._with_retries(leader_that_responds) == "leads"
    with pytest.raises(BrokerUnreachable, match=r"given up after 0 s: 127.0.0.1:9: rejected"):
        cluster_with_short_timeout._with_retries(raise_unreachable)


def test_a_broker_that_responded_once_is_retried_when_it_goes_silent(
    cluster_with_short_timeout: KafkaCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The address is right, so the broker or another leader will respond again."""
    monkeypatch.setattr(cluster_module, "BrokerConnection", lambda _address, _settings: Mock())
    address, silent = ("127.0.0.1", 9), 3

    def respond_after_silence(_broker: object) -> str:
        nonlocal silent
        silent -= 1
        if silent > 0:
            raise BrokerUnreachable("127.0.0.1:9: rejected")
        return "leads"

    assert cluster_with_short_timeout._at(address, lambda _broker: "here") == "here"
    assert (
        cluster_with_short_timeout._with_retries(lambda: cluster_with_short_timeout._at(address, respond_after_silence))
        == "leads"
    )
