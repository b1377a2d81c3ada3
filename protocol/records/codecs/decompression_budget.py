"""Limits the work for validating one Produce request.

Time and memory depend on the decompressed size, so the decompressed bytes of all of a request's partitions are counted
together. Parts that cost more than their size (blocks, chunks, frames, members) count as more bytes. A byte counts as
about a nanosecond.
"""

from collections.abc import Callable
from enum import Enum

# After this much work (bytes), a validating thread yields to other work and checks whether its result is still needed.
_GIVE_WAY_BYTES = 64 * 1024
_UNBOUNDED = 1 << 62
# The minimum that a block, chunk, frame or member counts, because opening an empty one costs this much.
_LEAST_BYTES = 2048


class Abandoned(Exception):
    """Raised if the result of the validation is no longer needed.

    The `give_way` callback of a DecompressionBudget raises it.
    """


class OutOfTime(Exception):
    """Raised if the validation would block other work where it runs, because of its time or memory.

    A DecompressionBudget raises it.
    """


class PayloadLimit(Enum):
    """The limit that a payload exceeds."""

    REQUEST = "limits.max_decompressed_bytes"
    RATIO = "limits.max_decompression_ratio"
    WINDOW = "limits.max_decompression_window_bytes"
    HEADERS = "limits.max_request_headers"


class OverLimit(Exception):
    """Raised if a batch exceeds a limit. `bound` is the limit, and `size` its value (bytes, or headers)."""

    def __init__(self, bound: PayloadLimit, size: int) -> None:
        super().__init__(f"more than {size} ({bound.value})")
        self.bound = bound
        self.size = size


class DecompressionBudget:
    """The budget of one request: decompressed bytes, record errors in its response, and headers of its records.

    - `plain_bytes`: the maximum number of decompressed bytes.
    - `most_headers`: the maximum number of headers; None means no maximum.
    - `give_way`: called about every 64 KiB of work; may raise Abandoned.
    - `exhausted`: set after the payloads exceeded `plain_bytes`. After that, no more bytes are decompressed.
    - `plain_left`, `record_errors`, `headers_left`: the remaining amounts.
    - `most_at_once`: the number of bytes that may be processed without calling `give_way`.
    - `most_held`: the number of bytes of one record that may be in memory.
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
        """Check that `size` bytes are left, before memory is allocated. Raises OverLimit."""
        if size > self.plain_left:
            self.exhausted = True
            raise OverLimit(PayloadLimit.REQUEST, self.plain_bytes)

    def check_open(self) -> None:
        """Check that the budget is not exhausted. Raises OverLimit."""
        if self.exhausted:
            raise OverLimit(PayloadLimit.REQUEST, self.plain_bytes)

    def spend(self, size: int) -> None:
        """Count `size` decompressed bytes. Raises OverLimit and the errors of `give_way`."""
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
        """Check before uninterruptible work on `size` bytes. Raises OutOfTime if the work would take too long here."""
        if size > self.most_at_once:
            raise OutOfTime

    def check_held(self, size: int) -> None:
        """Check before `size` bytes of one record are kept in memory. Raises OutOfTime if they are too many here."""
        if size > self.most_held:
            raise OutOfTime

    def for_rereading(self) -> "DecompressionBudget":
        """Return a budget for reading the same payloads again, with the same `give_way`.

        It has twice as many bytes, because changed timestamps may need more bytes.
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
        """Count work that equals reading `size` uncompressed bytes. Raises the errors of `give_way`."""
        self._since += size
        if self._since >= _GIVE_WAY_BYTES:
            self._since = 0
            self._give_way()


class PayloadLimits:
    """The limits of one payload: its decompressed size (`plain_bytes`), and its memory at any time (`window_bytes`)."""

    def __init__(self, plain_bytes: int, window_bytes: int, budget: DecompressionBudget) -> None:
        self.plain_bytes = plain_bytes
        self.window_bytes = window_bytes
        self.budget = budget
        self._left = plain_bytes

    def check_block(self, size: int) -> None:
        """Check a block's stated size before memory is allocated. Raises OverLimit."""
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
