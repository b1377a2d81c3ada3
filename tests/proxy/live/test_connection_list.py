"""What the page says that a connection waits for."""

from sluicegate.proxy.live.connection_list import WAITS, connections_of
from sluicegate.proxy.session.hold import Hold
from tests.proxy.session.playbook import Playbook


def test_every_reason_not_to_be_read_has_its_words() -> None:
    assert set(WAITS) == set(Hold)
    assert len(set(WAITS.values())) == len(Hold)


def test_a_client_that_waits_for_its_quota_is_listed_with_that() -> None:
    play = Playbook()
    play.session.client.hold(Hold.QUOTA)

    (listed,) = connections_of([play.session])["listed"]

    assert listed["waits_for"] == ["its quota"]
