"""The memory for bad records is limited in total, and freed with the last reference to a claim."""

import threading

from sluicegate.proxy.scheduling.extraction import MemoryClaim, QuarantineMemory


def test_claimed_memory_is_freed_with_the_last_reference_to_the_claim() -> None:
    room = QuarantineMemory(100)

    first = room.claim(60)
    assert first is not None
    assert room.claim(41) is None
    second = room.claim(40)
    assert (second is not None, room.free_bytes) == (True, 0)
    held = [first]
    del first
    assert room.free_bytes == 0
    held.clear()
    assert room.free_bytes == 60


def test_concurrent_claims_release_all_their_memory() -> None:
    room = QuarantineMemory(1000)

    def claim_and_let_go() -> None:
        claims: list[MemoryClaim | None] = []
        for size in range(500):
            claims.append(room.claim(size % 50))
            if size % 7 == 0:
                claims.clear()

    threads = [threading.Thread(target=claim_and_let_go) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert room.free_bytes == 1000
