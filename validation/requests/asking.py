"""Asks the rules for requests about one partition's batch, which a broker would take."""

from collections.abc import Sequence

from sluicegate.protocol.errors import ErrorCode
from sluicegate.validation import wording
from sluicegate.validation.mode import Mode
from sluicegate.validation.requests.request_rule import RequestRule, SentBatch
from sluicegate.validation.rules.asking import Answers
from sluicegate.validation.rules.rule import Client
from sluicegate.validation.verdict import Reason, Rejected

_MOST_TOLD = 8


def ask_request_rules(rules: Sequence[RequestRule], sent: SentBatch, client: Client, records: int) -> Answers:
    """All that concern this client, in the file's order. `records`: how many the batch has."""
    broken: dict[Mode, list[tuple[str, str]]] = {Mode.REJECT: [], Mode.OBSERVE: []}
    for rule in rules:
        words = rule.complaint(sent, client) if rule.concerns(client) else None
        if words is not None:
            broken[rule.mode].append((rule.name, words))
    return Answers(_rejection(broken[Mode.REJECT], records), _rejection(broken[Mode.OBSERVE], records))


def _rejection(broken: list[tuple[str, str]], records: int) -> Rejected | None:
    if not broken:
        return None
    text = "; ".join(wording.broken_rule(*one) for one in broken[:_MOST_TOLD])
    return Rejected(
        ErrorCode.POLICY_VIOLATION,
        Reason.REQUEST_RULE,
        text,
        records=records,
        rules=tuple((name, 0) for name, _ in broken),
    )
