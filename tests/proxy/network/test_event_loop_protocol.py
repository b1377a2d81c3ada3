"""What an event loop's own transport reads is followed by giving way; all else reaches the connection as it is."""

from typing import Any, cast

from sluicegate.proxy.network.event_loop_protocol import as_protocol


class Heard:
    """A connection, and who gives way: what was called of both, in its order."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def __getattr__(self, name: str) -> Any:
        return lambda *told: self.calls.append((name, *told))


def test_the_thread_gives_way_once_what_was_read_is_dealt_with() -> None:
    heard = Heard()
    protocol = cast(Any, as_protocol(cast(Any, heard), cast(Any, heard)))

    protocol.get_buffer(-1)
    protocol.buffer_updated(7)

    assert heard.calls == [("get_buffer", -1), ("buffer_updated", 7), ("has_taken", 7)]


def test_everything_else_is_told_as_it_is() -> None:
    heard, transport, error = Heard(), object(), OSError()
    protocol = cast(Any, as_protocol(cast(Any, heard), cast(Any, heard)))

    protocol.connection_made(transport)
    protocol.pause_writing()
    protocol.resume_writing()
    protocol.eof_received()
    protocol.connection_lost(error)

    told = [("connection_made", transport), ("pause_writing",), ("resume_writing",), ("eof_received",)]
    assert heard.calls == [*told, ("connection_lost", error)]


def test_with_nobody_who_gives_way_the_connection_is_the_protocol() -> None:
    connection = cast(Any, Heard())
    assert as_protocol(connection) is connection
