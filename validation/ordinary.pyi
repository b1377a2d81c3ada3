import builtins
from collections.abc import Callable

from sluicegate.validation.fallback_reason import FallbackReason
from sluicegate.validation.in_force import RulesInForce
from sluicegate.validation.policy import TopicPolicy, ValidationLimits

FALL_BACK: int
GOOD: int
GOOD_NO_RESPONSE: int

class BatchTally:
    name: str | None
    holder: str | None
    batches: int
    records: int
    bytes: int
    accepted: int
    unknown: int

    def accept(self, batches: int) -> None: ...
    def leave_unknown(self, batches: int) -> None: ...
    def take(self) -> tuple[int, int, int, int, int]: ...

class OrdinaryRequests:
    all: BatchTally
    requests: int
    partitions: int
    records: int
    bytes: int
    unchecked: int
    size: int

    def __init__(
        self, limits: ValidationLimits, max_partitions: int, now_ms: Callable[[], int], rules: RulesInForce
    ) -> None: ...
    def fallback_counts(self) -> dict[FallbackReason, int]: ...
    def add_topic(self, key: builtins.bytes, is_id: bool, name: str, policy: TopicPolicy) -> None: ...
    def sender(self, client_id: str | None, holder: str) -> BatchTally: ...
    def take_topics(self) -> list[BatchTally]: ...
    def take_senders(self) -> list[BatchTally]: ...
    def distance_counts(self) -> tuple[builtins.bytes, builtins.bytes]: ...
    def checksum(self, data: memoryview) -> int: ...
    def validate(self, data: memoryview, start: int, end: int, version: int) -> int: ...
