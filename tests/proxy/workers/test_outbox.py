"""Words to another process: in order, whatever their size, and without waiting for who does not hear."""

from multiprocessing import Pipe

from sluicegate.proxy.workers.outbox import Outbox
from tests.broker.eventually import eventually

LARGE = bytes(4 << 20)  # more than any pipe takes at once


def test_large_words_wait_for_nobody_and_arrive_in_order() -> None:
    here, there = Pipe()
    outbox = Outbox(here, "test")

    for word in (LARGE, 1, 2):  # nobody hears yet
        outbox.say(word)
    assert outbox.is_behind

    assert [there.recv() for _ in range(3)] == [LARGE, 1, 2]
    eventually(lambda: not outbox.is_behind)
    outbox.close()


def test_it_ends_with_the_other_side_though_that_never_heard() -> None:
    here, there = Pipe()
    outbox = Outbox(here, "test")
    outbox.say(LARGE)
    there.close()

    outbox.close()

    outbox.say("nobody hears this")
    here.close()
