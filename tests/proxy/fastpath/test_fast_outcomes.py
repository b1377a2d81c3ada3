"""Batches on the fast path are counted by the broker's response, like batches on the slow path."""

import pytest

from sluicegate.protocol.errors import ErrorCode
from sluicegate.protocol.framing import frame_of
from sluicegate.protocol.headers import build_response_header
from sluicegate.protocol.messages.produce import PRODUCE_RESPONSE
from sluicegate.protocol.messages.schema import Value
from sluicegate.proxy.fastpath.paths import HAS_FAST_PATH
from tests.bounds.frames import good_batch, sized_produce_request
from tests.proxy.session.playbook import NOW, Playbook

GOOD = good_batch(NOW)
LANES = pytest.mark.parametrize("has_fast_path", [False, True] if HAS_FAST_PATH else [False])
VERSIONS = [3, 4, 5, 7, 8, 9, 11, 12]
_ID = 5


def produce_response_with_codes(version: int, topics: dict[str, list[int]]) -> bytes:
    """Return the broker's response with the codes of each topic's partitions."""
    said: list[Value] = [
        {
            "name": name,
            "partition_responses": [
                {"index": index, "error_code": code, "base_offset": -1, "log_append_time_ms": -1}
                | {"log_start_offset": 0, "record_errors": [], "error_message": None}
                for index, code in enumerate(codes)
            ],
        }
        for name, codes in topics.items()
    ]
    body = PRODUCE_RESPONSE.build({"responses": said, "throttle_time_ms": 0}, version)
    return frame_of(build_response_header(_ID, 1 if version >= 9 else 0) + body)


def send_requests(play: Playbook, version: int, topics: dict[str, int], acks: int = 1) -> None:
    frame = sized_produce_request(
        version, {name.encode(): [(p, GOOD) for p in range(n)] for name, n in topics.items()}, acks, _ID
    )
    play.from_client(frame)
    play.loop.run_steps()


def batches_by_outcome(play: Playbook) -> tuple[dict[str, int], dict[tuple[str, str], int], dict[tuple[str, str], int]]:
    """Return the batches by outcome, also by client and by topic."""
    play.parts.observer.settle_traffic()
    counted = play.parts.observer.counted()
    return (
        {str(key): count for key, count in counted.validated_batches.items() if count},
        dict(counted.client_batches),
        dict(counted.topic_batches),
    )


def taught_session(has_fast_path: bool, version: int, *topics: str) -> Playbook:
    """A session whose first request, with a batch for each topic, has been answered."""
    play = Playbook(has_fast_path, SLUICEGATE__TOPICS="[{match: orders}, {match: payments}]")
    send_requests(play, version, dict.fromkeys(topics, 1))
    play.from_broker(produce_response_with_codes(version, {topic: [0] for topic in topics}))
    return play


@LANES
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        ([0, 0], {"accepted": 2}),
        ([0, ErrorCode.NOT_LEADER_OR_FOLLOWER], {"accepted": 1, "resend": 1}),
        ([ErrorCode.TOPIC_AUTHORIZATION_FAILED] * 2, {"rejected": 2}),
    ],
)
def test_batches_are_counted_by_broker_response_code(
    has_fast_path: bool, version: int, codes: list[int], expected: dict[str, int]
) -> None:
    play = taught_session(has_fast_path, version, "orders")

    send_requests(play, version, {"orders": 2})
    play.from_broker(produce_response_with_codes(version, {"orders": codes}))

    total, by_client, by_topic = batches_by_outcome(play)
    first = {"accepted": 1}
    assert total == {word: expected.get(word, 0) + first.get(word, 0) for word in expected | first}
    assert {outcome: count for (_, outcome), count in by_client.items()} == total
    assert {outcome: count for (topic, outcome), count in by_topic.items() if topic == "orders"} == total
    taken = play.parts.observer.counted().fast_requests["Produce"]
    assert taken == (1 if has_fast_path else 0)


@LANES
def test_topics_of_one_request_are_counted_separately(has_fast_path: bool) -> None:
    play = taught_session(has_fast_path, 9, "orders", "payments")

    send_requests(play, 9, {"orders": 3, "payments": 2})
    play.from_broker(produce_response_with_codes(9, {"orders": [0, 0, 6], "payments": [0, 0]}))

    _, _, by_topic = batches_by_outcome(play)
    assert by_topic == {("orders", "accepted"): 3, ("orders", "resend"): 1, ("payments", "accepted"): 3}


@LANES
@pytest.mark.parametrize("acks", [0, 1])
def test_batches_without_a_response_are_unknown(has_fast_path: bool, acks: int) -> None:
    play = taught_session(has_fast_path, 9, "orders")

    send_requests(play, 9, {"orders": 2}, acks)
    play.ends()

    total, by_client, by_topic = batches_by_outcome(play)
    assert total == {"accepted": 1, "unknown": 2}
    assert {outcome: count for (_, outcome), count in by_client.items()} == total
    assert by_topic == {("orders", "accepted"): 1, ("orders", "unknown"): 2}


@LANES
def test_a_response_that_breaks_off_leaves_the_outcome_unknown(has_fast_path: bool) -> None:
    play = taught_session(has_fast_path, 9, "orders")

    send_requests(play, 9, {"orders": 1})
    play.from_broker(produce_response_with_codes(9, {"orders": [0]})[:-6])
    play.ends()

    assert batches_by_outcome(play)[0] == {"accepted": 1, "unknown": 1}
