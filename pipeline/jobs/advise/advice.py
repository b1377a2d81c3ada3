"""Computes from a profile's bounds how many records each limit would reject, and the tightest limits that reject hardly
any sound record.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import yaml

from sluicegate.pipeline.jobs.profile.cells import KAFKA_4_AFTER_MAX_MS
from sluicegate.protocol.integers import LONG_MAX
from sluicegate.validation.rules.rule import Mode

AHEAD, BEHIND = "ahead", "behind"
_FINEST_MS = 60_000
"""Append times are estimated to about a minute, so no tighter limit is recommended."""
_KEYS = {BEHIND: "message.timestamp.before.max.ms", AHEAD: "message.timestamp.after.max.ms"}


@dataclass(frozen=True, slots=True)
class Beyond:
    """The number of a topic's `records` beyond a bound (ms) on one side, and `sound_beyond` of its `sound` ones."""

    topic: str
    side: str
    bound_ms: int
    beyond: int
    records: int
    sound_beyond: int
    sound: int


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit and the number of records that it would have rejected; `bound_ms` is LONG_MAX if no bound fits."""

    side: str
    bound_ms: int
    rejected: int
    sound_rejected: int


@dataclass(frozen=True, slots=True)
class Advice:
    """The tightest limits of one topic, and the effect of Kafka 4's default."""

    topic: str
    records: int
    behind: Limit
    ahead: Limit
    kafka_4: Limit
    broker_sets_times: bool = False


def advise(bounds: Iterable[Beyond], at_most: float, stamped: frozenset[str] = frozenset()) -> list[Advice]:
    """Return advice for each topic with records. `at_most`: share of sound records that a limit may reject. `stamped`:
    topics with LogAppendTime, where a limit would only reject records that the topic accepts.
    """
    of_topic: dict[str, list[Beyond]] = {}
    for each in sorted(bounds, key=lambda b: b.bound_ms):
        of_topic.setdefault(each.topic, []).append(each)
    return [
        _no_limits(topic, its[0].records) if topic in stamped else _advice(topic, its, at_most)
        for topic, its in sorted(of_topic.items())
    ]


def _no_limits(topic: str, records: int) -> Advice:
    behind, ahead = (Limit(side, LONG_MAX, 0, 0) for side in (BEHIND, AHEAD))
    return Advice(topic, records, behind, ahead, Limit(AHEAD, KAFKA_4_AFTER_MAX_MS, 0, 0), broker_sets_times=True)


def _advice(topic: str, bounds: Sequence[Beyond], at_most: float) -> Advice:
    kafka_4 = next(b for b in bounds if b.side == AHEAD and b.bound_ms == KAFKA_4_AFTER_MAX_MS)
    return Advice(
        topic,
        bounds[0].records,
        _tightest([b for b in bounds if b.side == BEHIND], at_most),
        _tightest([b for b in bounds if b.side == AHEAD], at_most),
        Limit(AHEAD, kafka_4.bound_ms, kafka_4.beyond, kafka_4.sound_beyond),
    )


def _tightest(bounds: Sequence[Beyond], at_most: float) -> Limit:
    for bound in bounds:
        if bound.bound_ms >= _FINEST_MS and bound.sound_beyond <= at_most * bound.sound:
            return Limit(bound.side, bound.bound_ms, bound.beyond, bound.sound_beyond)
    return Limit(bounds[0].side, LONG_MAX, 0, 0)


def as_yaml(advice: Sequence[Advice], bootstrap: Sequence[str]) -> str:
    """Return a complete configuration for `sluicegate check`. It observes, so it rejects nothing."""
    # A topic's name consists of letters, digits and . _ - only, which are literal in a glob.
    topics = [
        {"match": each.topic} | {_KEYS[limit.side]: limit.bound_ms for limit in (each.behind, each.ahead)}
        for each in advice
    ]
    config = {
        "upstream": {"bootstrap": list(bootstrap)},
        "listen": {"bootstrap": "127.0.0.1:19092"},
        "defaults": {"mode": Mode.OBSERVE.value},
        "topics": topics,
    }
    return yaml.safe_dump(config, sort_keys=False)
