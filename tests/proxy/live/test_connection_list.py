"""The connection list shows why a connection is paused."""

from sluicegate.config.teams import Owner
from sluicegate.proxy.live.connection_list import PAUSES, connections_of
from sluicegate.proxy.session.client.claimed_principal import UnverifiedReason
from sluicegate.proxy.session.pause_reason import PauseReason
from sluicegate.validation.requests.name_pattern import NamePattern, OwnedClients
from tests.proxy.session.playbook import Playbook


def test_every_pause_reason_has_its_own_text() -> None:
    assert set(PAUSES) == set(PauseReason)
    assert len(set(PAUSES.values())) == len(PauseReason)


def test_a_client_paused_by_its_quota_is_listed_with_the_reason() -> None:
    play = Playbook()
    play.session.client.pause(PauseReason.QUOTA)

    (listed,) = connections_of([play.session], ())["listed"]

    assert listed["pause_reasons"] == ["quota"]


def test_a_connection_has_the_owner_of_its_client() -> None:
    play = Playbook()
    play.session.identity.client_id = "shop-1"
    play.session.identity.principal = "User:billing-1"
    owners = (
        OwnedClients(NamePattern("User:billing-*"), None, Owner(team="billing", contact="#billing")),
        OwnedClients(None, NamePattern("shop-*"), Owner(team="shop")),
    )

    def owner_of_first_connection() -> object:
        return connections_of([play.session], owners)["listed"][0]["owner"]

    assert owner_of_first_connection() == {"team": "billing", "contact": "#billing"}
    play.session.identity.doubt = UnverifiedReason.UNDECLARED_CLAIM  # another client may use the principal's name
    assert owner_of_first_connection() == {"team": "shop", "contact": None}
    play.session.identity.client_id = None
    assert owner_of_first_connection() is None


def test_address_with_many_connections_does_not_displace_others() -> None:
    play = Playbook()
    peers = [f"192.0.2.1:{port}" for port in range(300)] + [f"198.51.100.{host}:1" for host in range(1, 6)]
    sessions = [play.another_session()[0] for _ in peers]
    for session, peer in zip(sessions, peers, strict=True):
        session.identity.peer = peer
        session.client.pause(PauseReason.QUOTA)

    listed = connections_of(sessions, (), max_listed=20)["listed"]

    assert len(listed) == 20
    assert {one["client_address"] for one in listed} > set(peers[300:])
