"""After the start, requests about topic settings wait several seconds for the first read of the state topic."""

import asyncio

from sluicegate.proxy.server.first_read import FirstRead


async def test_requests_wait_until_the_state_topic_is_read() -> None:
    first_read, reported = FirstRead(), list[int]()
    first_read.start(60)
    for number in (1, 2):
        first_read.wait(lambda number=number: reported.append(number))
    await asyncio.sleep(0)
    assert (reported, first_read.is_done) == ([], False)

    first_read.done()

    assert (reported, first_read.is_done) == ([1, 2], True)
    first_read.wait(lambda: reported.append(3))
    assert reported == [1, 2, 3]


async def test_requests_stop_waiting_for_the_state_topic_after_a_timeout() -> None:
    first_read, ended = FirstRead(), asyncio.Event()
    first_read.start(0.01)

    first_read.wait(ended.set)
    await asyncio.wait_for(ended.wait(), 30)

    assert not first_read.is_done
    reported = []
    first_read.wait(lambda: reported.append(True))
    assert reported == [True]
    first_read.done()
    assert first_read.is_done
    assert reported == [True]


async def test_callback_of_first_read_may_register_another_callback() -> None:
    first_read, reported = FirstRead(), list[str]()

    def report() -> None:
        reported.append("first")
        first_read.wait(lambda: reported.append("next"))

    first_read.wait(report)
    first_read.done()
    assert reported == ["first", "next"]
