"""Reports clients with unverified principals as conditions, if policies name principals."""

from collections import Counter

from sluicegate.proxy.session.client.claimed_principal import UnverifiedReason
from sluicegate.proxy.session.handlers.session import Session
from sluicegate.proxy.status.condition import Condition
from sluicegate.proxy.status.status import Status
from sluicegate.validation.in_force import RulesInForce


class UnverifiedClients:
    """Counts connections in rounds over all sessions. The condition has one subject for each reason."""

    def __init__(self, status: Status, rules: RulesInForce) -> None:
        self._status = status
        self._rules = rules
        self._round: Counter[UnverifiedReason] = Counter()

    def count(self, session: Session) -> None:
        """Count a session in this round."""
        doubt = session.identity.doubt
        if doubt is not None:
            self._round[doubt] += 1

    def end_round(self) -> None:
        """End the round and report its counts."""
        found, self._round = self._round, Counter()
        if self._rules.rulebook.in_file.names_principals:
            for doubt, connections in found.items():
                detail = f"{connections} connections: {doubt.reason}; {doubt.advice}"
                self._status.begin(Condition.PRINCIPAL_UNVERIFIED, detail, doubt.value)
