"""What a session waits for at this moment, as its deadlines look at it."""

from sluicegate.proxy.session.connection import Connection
from sluicegate.proxy.session.deadlines import DeadlineSnapshot
from sluicegate.proxy.session.pause_reason import PauseReason
from sluicegate.proxy.session.request_handler import RequestHandler
from sluicegate.proxy.session.response_handler import ResponseHandler


def snapshot_of(
    client: Connection, broker: Connection, requests: RequestHandler, answers: ResponseHandler
) -> DeadlineSnapshot:
    """See `DeadlineSnapshot`."""
    answer: tuple[bool, int] | None = None
    if broker.mid_frame and not broker.is_paused:
        answer = (True, broker.frames_ended) if broker.is_gathering else (False, broker.bytes_in)
    # A request that the proxy does not read because of a quota has its time when it is read again.
    waits = PauseReason.QUOTA in client.pause_reasons or PauseReason.QUOTA_TURN in client.pause_reasons
    return DeadlineSnapshot(
        request=client.frames_ended if client.mid_frame and not waits else None,
        held_of_request=client.bytes_in if requests.holds_what_others_wait_for and not waits else None,
        answer=answer,
        dealt_with=requests.busy_with,
        unsent=broker.unsent_bytes if broker.is_full else None,
        others_wait=requests.others_wait,
        unread=client.unsent_bytes if client.is_full and answers.others_wait else None,
        moved=client.bytes_in + broker.bytes_in,
    )
