"""Bounds that are tried on what comes for a topic, and not in force (`rehearse`)."""

from collections.abc import Iterator
from typing import NamedTuple

from sluicegate.protocol.records.scan import Rehearsal
from sluicegate.validation.cluster_settings import AFTER_MAX, BEFORE_MAX
from sluicegate.validation.policy import Rehearsed, TopicPolicy


class TriedBound(NamedTuple):
    """A Kafka key and the bound that is tried for it (ms)."""

    key: str
    max_ms: int


def rehearsal_of(policy: TopicPolicy) -> Rehearsal | None:
    """What counts for one batch; None where nothing is tried."""
    tried = policy.rehearsed
    if tried is None:
        return None
    return Rehearsal(policy.before_max_ms, policy.after_max_ms, tried.before_max_ms, tried.after_max_ms)


def bounds_of(tried: Rehearsed) -> Iterator[TriedBound]:
    """What is tried, in the order of a Rehearsal's counts."""
    for bound in tried.before_max_ms:
        yield TriedBound(BEFORE_MAX, bound)
    for bound in tried.after_max_ms:
        yield TriedBound(AFTER_MAX, bound)
