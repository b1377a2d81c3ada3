"""Validates a request on both paths at the same time."""

from collections import Counter
from collections.abc import Mapping

from sluicegate.protocol.errors import SenderError
from sluicegate.protocol.produce_request import walk_produce_request
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
from sluicegate.protocol.records.record_limit import check_record_count
from sluicegate.proxy.fastpath.paths import make_ordinary_requests
from sluicegate.validation.in_force import RulesInForce
from sluicegate.validation.policy import TopicPolicy, ValidationLimits
from sluicegate.validation.produce.request import validate_request
from sluicegate.validation.rulebook import FilePolicies, Rulebook
from sluicegate.validation.timestamps import IN_FUTURE_MS

_MAX_PARTITIONS = 10_000
GOOD = "good"
FALLS_BACK = "looks closer, and the request is good"
RIGHTLY = "looks closer at what is not"


class BothPaths:
    """Both paths with the same topics (by name and by id) and policies. `counts`: how often the fast path fell back."""

    def __init__(
        self,
        topics: Mapping[str, TopicPolicy],
        ids: Mapping[bytes, str],
        limits: ValidationLimits,
        max_partitions: int = _MAX_PARTITIONS,
    ) -> None:
        self.counts: Counter[str] = Counter()
        self._now_ms = 0
        self._topics = topics
        self._ids = ids
        self._limits = limits
        self._max_partitions = max_partitions
        self._decompressor = Decompressor()
        rules = RulesInForce(Rulebook(FilePolicies(TopicPolicy(), ())))
        fast = make_ordinary_requests(limits, max_partitions, lambda: self._now_ms, rules)
        assert fast is not None, "there is no fast path: it was not compiled"
        self._fast = fast

    def validate(self, frame: bytearray, version: int, body_at: int, now_ms: int) -> bool:
        """Return whether the fast path accepts the request. Raises AssertionError if the slow path rejects it or counts
        differently.
        """
        self._now_ms = now_ms
        self._teach()
        before = self._counted()
        verdict = self._fast.validate(memoryview(frame), body_at, len(frame), version)
        counted = tuple(after - b for after, b in zip(self._counted(), before, strict=True))
        slow = self._slow(frame, version, body_at, now_ms)
        if not verdict:
            assert counted == (0, 0, 0, 0)
            self.counts[RIGHTLY if slow is None else FALLS_BACK] += 1
            return False
        assert slow is not None, f"the slow path rejects it: v{version}, {bytes(frame).hex()}"
        assert (*counted, verdict) == slow, f"{counted}, {verdict} and {slow}: v{version}, {bytes(frame).hex()}"
        self.counts[GOOD] += 1
        return True

    def _teach(self) -> None:
        for name, policy in self._topics.items():
            self._teach_one(name.encode(), False, name, policy)
        for topic_id, name in self._ids.items():
            self._teach_one(topic_id, True, name, self._topics[name])

    def _teach_one(self, key: bytes, is_id: bool, name: str, policy: TopicPolicy) -> None:
        """Teach the fast path a topic as the slow path does."""
        ordinary = policy.ordinary
        if ordinary is not None:
            self._fast.add_topic(key, is_id, name, ordinary)

    def _counted(self) -> tuple[int, int, int, int]:
        fast = self._fast
        return fast.requests, fast.partitions, fast.records, fast.unchecked

    def _slow(self, frame: bytearray, version: int, body_at: int, now_ms: int) -> tuple[int, int, int, int, int] | None:
        """Return the counts of the slow path, and 2 for acks=0, otherwise 1. Return None unless everything is valid
        without a report."""
        try:
            request = walk_produce_request(frame, version, body_at, self._max_partitions)
            check_record_count(request, self._limits.max_request_records)
        except SenderError:
            return None
        validated = validate_request(
            request,
            self._ids,
            lambda name: self._topics.get(name, TopicPolicy()),
            self._limits,
            lambda: now_ms,
            self._decompressor,
            DecompressionBudget(
                self._limits.max_decompressed_bytes, 1000, lambda: None, most_headers=self._limits.max_request_headers
            ),
        )
        accepted = validated.accepted.values()
        if (
            validated.rejected
            or validated.observed
            or validated.unreadable
            or validated.replacements()
            or any(map(any, validated.rehearsed.values()))
            or request.acks not in (-1, 0, 1)
            or any(a.ahead_ms > IN_FUTURE_MS for a in accepted)
        ):
            return None
        if any(topic.name is not None and topic.name not in self._topics for topic in request.topics):
            return None  # the topic is unknown
        records = sum(a.records for a in accepted)
        return 1, len(validated.accepted), records, len(validated.waived), 1 if request.acks else 2
