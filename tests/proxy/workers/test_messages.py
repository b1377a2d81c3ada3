"""Messages from another process arrive whole and in order, at any size. Their end is reported once."""

import os
import threading
from functools import partial
from multiprocessing import Pipe
from queue import SimpleQueue
from threading import Thread

from sluicegate.proxy.workers.messages import Inbox, Outbox
from tests.broker.eventually import eventually

LARGE = bytes(4 << 20)  # more than any pipe accepts at once, so it arrives in pieces
WAIT_SECONDS = 60


def running_thread_names() -> set[str]:
    """Return the names of the running threads."""
    return {thread.name for thread in threading.enumerate()}


def test_fragmented_messages_arrive_complete_and_in_order() -> None:
    here, there = Pipe()
    on_message: SimpleQueue[object] = SimpleQueue()
    inbox = Inbox(
        here, "test", lambda call, *arguments: call(*arguments), on_message.put, partial(on_message.put, "ended")
    )

    sending = Thread(target=lambda: [there.send(word) for word in (LARGE, 1, LARGE)])
    sending.start()

    assert [on_message.get(timeout=WAIT_SECONDS) for _ in range(3)] == [LARGE, 1, LARGE]
    sending.join()
    there.close()
    assert on_message.get(timeout=WAIT_SECONDS) == "ended"
    inbox.close()
    here.close()
    assert on_message.empty()


def test_truncated_message_is_reported_as_the_end() -> None:
    here, there = Pipe()
    on_message: SimpleQueue[object] = SimpleQueue()
    inbox = Inbox(
        here, "test", lambda call, *arguments: call(*arguments), on_message.put, partial(on_message.put, "ended")
    )

    os.write(there.fileno(), b"\0\0\1\0half")  # part of 256 announced bytes
    there.close()

    assert on_message.get(timeout=WAIT_SECONDS) == "ended"
    inbox.close()
    here.close()


def test_inbox_ends_if_its_event_loop_is_closed() -> None:
    here, there = Pipe()

    def raise_loop_closed(*_: object) -> None:
        raise RuntimeError("Event loop is closed")

    inbox = Inbox(here, "of a closed loop", raise_loop_closed, print, print)
    there.send(1)

    inbox.close()
    assert "of a closed loop" not in running_thread_names()
    here.close()
    there.close()


def test_large_messages_do_not_block_and_arrive_in_order() -> None:
    here, there = Pipe()
    outbox = Outbox(here, "test")

    for word in (LARGE, 1, 2):  # no reader has started
        outbox.send(word)
    assert outbox.is_behind

    assert [there.recv() for _ in range(3)] == [LARGE, 1, 2]
    eventually(lambda: not outbox.is_behind)
    outbox.close()


def test_an_outbox_ends_when_the_other_process_has_ended() -> None:
    here, there = Pipe()
    outbox = Outbox(here, "to an ended process")
    outbox.send(LARGE)
    there.close()

    outbox.close()
    assert "to an ended process" not in running_thread_names()

    outbox.send("nobody hears this")
    here.close()
