"""What validating one whole Produce request may still cost.

Validating costs time and memory by what a payload becomes, not by what it was sent as, so the bytes that come out are
counted, for all partitions of a request together. Whatever is dear for its size (a block, a chunk, a frame, a member)
counts as more than it holds; a byte stands for about a nanosecond.
"""

from collections.abc import Callable
from enum import Enum

# Work in bytes after which a validating thread lets others go on, and hears whether it is still wanted.
_GIVE_WAY_BYTES = 64 * 1024
_UNBOUNDED = 1 << 62
# What a block, chunk, frame or member counts at least: that is what opening an empty one costs.
_LEAST_BYTES = 2048


class Abandoned(Exception):
    """Nobody wants the validation any more; raised by what an Allowance calls to give way."""


class OutOfTime(Exception):
    """Where it is validated others would wait too long; raised by what an Allowance calls to give way."""


class Bound(Enum):
    """Which limit a payload has met."""

    REQUEST = "limits.max_decompressed_bytes"
    RATIO = "limits.max_decompression_ratio"
    WINDOW = "limits.max_decompression_window_bytes"
    HEADERS = "limits.max_request_headers"


class OverLimit(Exception):
    """A batch is more than allowed: `bound` says by which limit, `size` how much that was (bytes, or headers)."""

    def __init__(self, bound: Bound, size: int) -> None:
        super().__init__(f"more than {size} ({bound.value})")
        self.bound = bound
        self.size = size


class Allowance:
    """For one request: `plain_bytes` may come out of its payloads, `record_errors` be listed in its answer, and
    `most_headers` be in its records; None: any number.

    `give_way` is called about every 64 KiB of work and may raise Abandoned. `exhausted`: the payloads wanted more, and
    get nothing from then on. `plain_left`, `record_errors` and `headers_left` are what is left. `most_at_once`: how
    many bytes may be worked on without giving way in between.
    """

    def __init__(
        self,
        plain_bytes: int,
        record_errors: int,
        give_way: Callable[[], None],
        most_at_once: int = _UNBOUNDED,
        most_headers: int | None = None,
    ) -> None:
        self.plain_bytes = plain_bytes
        self.record_errors = record_errors
        self.exhausted = False
        self.most_at_once = most_at_once
        self._give_way = give_way
        self.plain_left = plain_bytes
        self.most_headers = _UNBOUNDED if most_headers is None else most_headers
        self.headers_left = self.most_headers
        self._since = 0

    def check(self, size: int) -> None:
        """Whether `size` bytes may come out at all, before room is made for them. Raises OverLimit."""
        if size > self.plain_left:
            self.exhausted = True
            raise OverLimit(Bound.REQUEST, self.plain_bytes)

    def check_open(self) -> None:
        """Whether anything more may come out: nothing behind what was too much. Raises OverLimit."""
        if self.exhausted:
            raise OverLimit(Bound.REQUEST, self.plain_bytes)

    def spend(self, size: int) -> None:
        """`size` bytes have come out. Raises OverLimit, and what `give_way` raises."""
        self.check(size)
        self.plain_left -= size
        self.worked(size)

    def spend_headers(self, count: int) -> None:
        """A record has so many. Raises OverLimit."""
        if count > self.headers_left:
            self.headers_left = 0
            raise OverLimit(Bound.HEADERS, self.most_headers)
        self.headers_left -= count

    def check_at_once(self, size: int) -> None:
        """Before what takes `size` bytes and cannot be interrupted. Raises OutOfTime where that is too long."""
        if size > self.most_at_once:
            raise OutOfTime

    def to_read_again(self) -> "Allowance":
        """One for payloads that were read before: what comes out of them again is not counted, and others have their
        turn as ever. There may be twice as much, because other times may take more bytes.
        """
        most = self.plain_bytes
        return Allowance(most if most > _UNBOUNDED >> 1 else 2 * most, 0, self._give_way, self.most_at_once)

    def worked(self, size: int) -> None:
        """As much has been done as looking at `size` plain bytes takes. Raises what `give_way` raises."""
        self._since += size
        if self._since >= _GIVE_WAY_BYTES:
            self._since = 0
            self._give_way()


class Bounds:
    """What one payload may become (`plain_bytes`) and make us hold at once (`window_bytes`), within an allowance."""

    def __init__(self, plain_bytes: int, window_bytes: int, allowance: Allowance) -> None:
        self.plain_bytes = plain_bytes
        self.window_bytes = window_bytes
        self.allowance = allowance
        self._left = plain_bytes

    def check_block(self, size: int) -> None:
        """A block states its size before room is made for it. Raises OverLimit."""
        if size > self.window_bytes:
            raise OverLimit(Bound.WINDOW, self.window_bytes)
        self._check(size)
        self.allowance.check(size)

    def spend(self, size: int) -> None:
        """A piece of `size` bytes has come out. Raises OverLimit, and Abandoned."""
        self._check(size)
        self._left -= size
        self.allowance.spend(size if size > _LEAST_BYTES else _LEAST_BYTES)

    def _check(self, size: int) -> None:
        if size > self._left:
            raise OverLimit(Bound.RATIO, self.plain_bytes)
