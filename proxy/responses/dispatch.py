"""What is sent to a broker for a request that has been judged."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from sluicegate.proxy.responses.dead_letters import DeadLetters
from sluicegate.validation.produce import JudgedRequest

if TYPE_CHECKING:
    from sluicegate.proxy.responses.produce_responses import PartlyRefused


class Dispatch:
    """What is sent for a judged request: `parts()` in its frame's place where something of it was refused or fixed.

    `partly` is what becomes of the broker's answer then; None: nothing was refused. `parts` None: the request goes as
    it came. `dead_letters` are to be kept before any of that.
    """

    def __init__(
        self,
        judged: JudgedRequest,
        partly: "PartlyRefused | None",
        parts: Callable[[], list[bytes | memoryview]] | None,
    ) -> None:
        self.judged = judged
        self.partly = partly
        self.parts = parts
        self.dead_letters: Sequence[DeadLetters] = ()
