"""While policies name principals, there is a condition for each reason why connections have unverified principals."""

import json

import pytest

from sluicegate.proxy.server.unverified_clients import UnverifiedClients
from sluicegate.proxy.session.client.claimed_principal import UnverifiedReason
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import Status
from tests.proxy.session.playbook import Playbook

_CEL = "client.principal == 'User:a' || size(value) > 1"
_POLICIES = {
    "EXEMPT": [{"principal": "User:mirror"}],
    "QUOTAS": [{"name": "q", "principal": "User:a", "requests_per_second": 1}],
    "REQUESTS": [{"name": "r", "match": {"principal": "User:a"}, "idempotent": True}],
    "CLIENT_OWNERS": [{"principal": "User:a", "owner": {"team": "a"}}],
    "DEFAULTS__RULES": [{"name": "c", "cel": _CEL}],
}


class _Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def _unverified(play: Playbook, status: Status) -> UnverifiedClients:
    return UnverifiedClients(status, play.parts.rules)


def _conditions(status: Status) -> dict[str, str]:
    return {each.subject: each.detail for each in status.active() if each.condition is Condition.PRINCIPAL_UNVERIFIED}


@pytest.mark.parametrize("policy", _POLICIES)
def test_unverified_client_raises_a_condition_if_a_policy_names_principals(policy: str) -> None:
    play = Playbook(**{f"SLUICEGATE__{policy}": json.dumps(_POLICIES[policy])})
    status = Status()
    clients = _unverified(play, status)
    play.session.identity.doubt = UnverifiedReason.DELEGATION_TOKEN

    clients.count(play.session)
    clients.end_round()

    assert list(_conditions(status)) == ["delegation_token"]
    assert _conditions(status)["delegation_token"].startswith("1 connections: the user name of a login with ")


def test_unverified_client_raises_no_condition_if_no_policy_names_principals() -> None:
    play = Playbook(SLUICEGATE__EXEMPT='[{"client_id": "mirror"}]')
    status = Status()
    clients = _unverified(play, status)
    play.session.identity.doubt = UnverifiedReason.NO_NAME

    clients.count(play.session)
    clients.end_round()

    assert _conditions(status) == {}


def test_unverified_condition_ends_five_minutes_after_last_unverified_client() -> None:
    play = Playbook(SLUICEGATE__EXEMPT='[{"principal": "User:mirror"}]')
    clock = _Clock()
    status = Status(seconds=clock)
    clients = _unverified(play, status)
    play.session.identity.doubt = UnverifiedReason.UNDECLARED_USER_NAME
    clients.count(play.session)
    clients.end_round()
    play.session.identity.doubt = None
    clients.count(play.session)
    clients.end_round()

    clock.seconds = 299.0
    status.beat()
    assert list(_conditions(status)) == ["undeclared_user_name"]
    clock.seconds = 301.0
    status.beat()

    assert _conditions(status) == {}


def test_each_unverified_reason_has_a_text_and_advice() -> None:
    assert all(doubt.reason and doubt.advice for doubt in UnverifiedReason)
