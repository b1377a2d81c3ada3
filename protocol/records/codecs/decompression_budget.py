"""The budget for the validation of one Produce request.

Time and memory depend on the decompressed size, so decompressed bytes are counted, for all partitions of a request
together. Parts that cost more than their size (blocks, chunks, frames, members) count as more bytes. A byte counts as
about a nanosecond.
"""

from collections.abc import Callable
from enum import Enum

# Work (bytes) after which a validating thread gives way and checks whether it is still wanted.
_GIVE_WAY_BYTES = 64 * 1024
_UNBOUNDED = 1 << 62
# The least that a block, chunk, frame or member counts: the cost of opening an empty one.
_LEAST_BYTES = 2048


class Abandoned(Exception):
    """The validation is no longer wanted; raised by `give_way` of a DecompressionBudget."""


class OutOfTime(Exception):
    """The validation takes too long, or too much memory, for where it runs, and would block other work; raised by a
    DecompressionBudget.
    """


class PayloadLimit(Enum):
    """The limit that a payload exceeds."""

    REQUEST = "limits.max_decompressed_bytes"
    RATIO = "limits.max_decompression_ratio"
    WINDOW = "limits.max_decompression_window_bytes"
    HEADERS = "limits.max_request_headers"


class OverLimit(Exception):
    """A batch exceeds a limit: `bound` is the limit, `size` its value (bytes, or headers)."""

    def __init__(self, bound: PayloadLimit, size: int) -> None:
        super().__init__(f"more than {size} ({bound.value})")
        self.bound = bound
        self.size = size


class DecompressionBudget:
    """The budget of one request: decompressed bytes (`plain_bytes`), record errors in its response, and headers of its
    records (`most_headers`; None: any number).

    `give_way` is called about every 64 KiB of work and may raise Abandoned. `exhausted`: the payloads exceeded
    `plain_bytes`, and get nothing more. `plain_left`, `record_errors` and `headers_left` are what is left.
    `most_at_once`: how many bytes may be processed without giving way. `most_held`: how many bytes of one record may be
    in memory.
    """

    def __init__(
        self,
        plain_bytes: int,
        record_errors: int,
        give_way: Callable[[], None],
        most_at_once: int = _UNBOUNDED,
        most_headers: int | None = None,
        most_held: int = _UNBOUNDED,
    ) -> None:
        self.plain_bytes = plain_bytes
        self.record_errors = record_errors
        self.exhausted = False
        self.most_at_once = most_at_once
        self.most_held = most_held
        self._give_way = give_way
        self.plain_left = plain_bytes
        self.most_headers = _UNBOUNDED if most_headers is None else most_headers
        self.headers_left = self.most_headers
        self._since = 0

    def check(self, size: int) -> None:
        """Check, before memory is allocated, that `size` bytes are left. Raises OverLimit."""
        if size > self.plain_left:
            self.exhausted = True
            raise OverLimit(PayloadLimit.REQUEST, self.plain_bytes)

    def check_open(self) -> None:
        """Check that the budget is not exhausted. Raises OverLimit."""
        if self.exhausted:
            raise OverLimit(PayloadLimit.REQUEST, self.plain_bytes)

    def spend(self, size: int) -> None:
        """Count `size` decompressed bytes. Raises OverLimit, and what `give_way` raises."""
        self.check(size)
        self.plain_left -= size
        self.worked(size)

    def spend_headers(self, count: int) -> None:
        """Count the headers of a record. Raises OverLimit."""
        if count > self.headers_left:
            self.headers_left = 0
            raise OverLimit(PayloadLimit.HEADERS, self.most_headers)
        self.headers_left -= count

    def check_at_once(self, size: int) -> None:
        """Check before uninterruptible work on `size` bytes. Raises OutOfTime if that takes too long here."""
        if size > self.most_at_once:
            raise OutOfTime

    def check_held(self, size: int) -> None:
        """Check before `size` bytes of one record are kept in memory. Raises OutOfTime if that is too much here."""
        if size > self.most_held:
            raise OutOfTime

    def for_rereading(self) -> "DecompressionBudget":
        """Return a budget for reading the same payloads again; it gives way as before.

        It has twice as many bytes, because changed times may need more bytes.
        """
        most = self.plain_bytes
        return DecompressionBudget(
            most if most > _UNBOUNDED >> 1 else 2 * most,
            0,
            self._give_way,
            self.most_at_once,
            most_held=self.most_held,
        )

    def worked(self, size: int) -> None:
        """Count work that equals reading `size` plain bytes. Raises what `give_way` raises."""
        self._since += size
        if self._since >= _GIVE_WAY_BYTES:
            self._since = 0
            self._give_way()


class PayloadLimits:
    """The limits of one payload: its decompressed size (`plain_bytes`), and the memory at one time (`window_bytes`)."""

    def __init__(self, plain_bytes: int, window_bytes: int, budget: DecompressionBudget) -> None:
        self.plain_bytes = plain_bytes
        self.window_bytes = window_bytes
        self.budget = budget
        self._left = plain_bytes

    def check_block(self, size: int) -> None:
        """Check the stated size of a block before memory is allocated. Raises OverLimit."""
        if size > self.window_bytes:
            raise OverLimit(PayloadLimit.WINDOW, self.window_bytes)
        self._check(size)
        self.budget.check(size)

    def spend(self, size: int) -> None:
        """Count a piece of `size` decompressed bytes. Raises OverLimit and Abandoned."""
        self._check(size)
        self._left -= size
        self.budget.spend(size if size > _LEAST_BYTES else _LEAST_BYTES)

    def _check(self, size: int) -> None:
        if size > self._left:
            raise OverLimit(PayloadLimit.RATIO, self.plain_bytes)
