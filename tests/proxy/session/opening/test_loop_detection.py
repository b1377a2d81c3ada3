"""The proxy recognizes its own requests and connections, and no others."""

import pytest

from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.errors import UpstreamIsThisProxy
from sluicegate.protocol.headers import HEAD_BYTES, build_request_header
from sluicegate.proxy.session.opening.loop_detection import LoopDetection, new_mark

MARK = 77
OURS = "10.0.0.1:19092"


def first_request_head(correlation_id: int) -> bytes:
    return build_request_header(ApiKey.API_VERSIONS, 0, correlation_id, "anybody", 1)[:HEAD_BYTES]


def test_the_proxys_own_first_request_is_recognized() -> None:
    loop_detection = LoopDetection(MARK)

    with pytest.raises(UpstreamIsThisProxy, match="bootstrap"):
        loop_detection.check(("10.0.0.9:5000", OURS), first_request_head(MARK), "bootstrap")

    assert loop_detection.listener == "bootstrap"


@pytest.mark.parametrize("peer", ["10.0.0.1:40000", "::ffff:10.0.0.1:40000"])
def test_the_proxys_own_connection_is_recognized_while_it_is_open(peer: str) -> None:
    loop_detection = LoopDetection(MARK)
    loop_detection.made(("10.0.0.1:40000", OURS))

    with pytest.raises(UpstreamIsThisProxy, match="broker 2"):
        loop_detection.check((peer, OURS), first_request_head(1), "broker 2")

    loop_detection.ended(("10.0.0.1:40000", OURS))
    loop_detection.check((peer, OURS), first_request_head(1), "broker 2")


def test_accepts_connections_of_other_peers() -> None:
    loop_detection = LoopDetection(MARK)
    loop_detection.made(("10.0.0.1:40000", "10.0.0.5:9092"))

    loop_detection.check(("10.0.0.1:40001", OURS), first_request_head(1), "bootstrap")
    loop_detection.check(("10.0.0.1:40000", OURS), first_request_head(1), "a port that the system gave to both")

    assert loop_detection.listener is None


def test_loop_detection_marks_are_unique() -> None:
    assert new_mark() != new_mark()
