import builtins
from collections.abc import Callable

from sluicegate.validation.fallback_reason import LookedCloser
from sluicegate.validation.in_force import RulesInForce
from sluicegate.validation.policy import JudgementLimits, TopicPolicy

LOOK_CLOSER: int
GOOD: int
GOOD_UNANSWERED: int

class OrdinaryRequests:
    requests: int
    partitions: int
    records: int
    bytes: int
    unchecked: int
    size: int

    def __init__(
        self, limits: JudgementLimits, max_partitions: int, now_ms: Callable[[], int], rules: RulesInForce
    ) -> None: ...
    def closer_by(self) -> dict[LookedCloser, int]: ...
    def teach(self, key: builtins.bytes, is_id: bool, policy: TopicPolicy) -> None: ...
    def reaches(self) -> tuple[builtins.bytes, builtins.bytes]: ...
    def checksum(self, data: memoryview) -> int: ...
    def judge(self, data: memoryview, start: int, end: int, version: int) -> int: ...
