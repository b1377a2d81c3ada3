"""What this proxy has sent is known when it comes back; anything else is not."""

import pytest

from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.errors import UpstreamLeadsBack
from sluicegate.protocol.headers import HEAD_BYTES, build_request_header
from sluicegate.proxy.session.leading_back import LeadingBack, new_mark

MARK = 77
OURS = "10.0.0.1:19092"


def greeting(correlation_id: int) -> bytes:
    return build_request_header(ApiKey.API_VERSIONS, 0, correlation_id, "anybody", 1)[:HEAD_BYTES]


def test_its_own_first_question_wherever_it_comes_from() -> None:
    leading_back = LeadingBack(MARK)

    with pytest.raises(UpstreamLeadsBack, match="bootstrap"):
        leading_back.look_at(("10.0.0.9:5000", OURS), greeting(MARK), "bootstrap")

    assert leading_back.listener == "bootstrap"


@pytest.mark.parametrize("peer", ["10.0.0.1:40000", "::ffff:10.0.0.1:40000"])
def test_a_connection_of_its_own_while_there_is_one(peer: str) -> None:
    leading_back = LeadingBack(MARK)
    leading_back.made(("10.0.0.1:40000", OURS))

    with pytest.raises(UpstreamLeadsBack, match="broker 2"):
        leading_back.look_at((peer, OURS), greeting(1), "broker 2")

    leading_back.ended(("10.0.0.1:40000", OURS))
    leading_back.look_at((peer, OURS), greeting(1), "broker 2")


def test_anybody_else() -> None:
    leading_back = LeadingBack(MARK)
    leading_back.made(("10.0.0.1:40000", "10.0.0.5:9092"))

    leading_back.look_at(("10.0.0.1:40001", OURS), greeting(1), "bootstrap")
    leading_back.look_at(("10.0.0.1:40000", OURS), greeting(1), "a port that the system gave to both")

    assert leading_back.listener is None


def test_marks_differ() -> None:
    assert new_mark() != new_mark()
