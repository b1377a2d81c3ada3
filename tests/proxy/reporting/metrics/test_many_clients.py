"""Ten thousand clients that violate rules add no more series and log lines than the first few hundred."""

import re
from time import monotonic

import pytest
from prometheus_client.exposition import generate_latest
from structlog.testing import capture_logs

from sluicegate.protocol.produce_request import walk_produce_request
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
from sluicegate.proxy.reporting.logs.aggregation import LINES_A_SECOND, LINES_AT_ONCE
from sluicegate.proxy.reporting.metrics.collection import MetricsCollector, metrics_of
from sluicegate.proxy.reporting.metrics.counters import Snapshot
from sluicegate.proxy.reporting.metrics.violation_labels import MAX_CLIENTS, MAX_KINDS
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.validation.policy import ValidationLimits
from sluicegate.validation.produce.request import validate_request
from tests.proxy.session.outcomes import settled_outcome
from tests.proxy.session.playbook import NOW, Playbook
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import produce_body, topic_data

pytestmark = pytest.mark.long

CLIENTS = 10_000
EVERY_KIND = 3 * MAX_CLIENTS  # after this number, the clients without their own label have violated every rule
SETTINGS = {
    "SLUICEGATE__DEFAULTS__RULES": """
        - {name: keyed, key: {required: true}}
        - {name: text, value: {utf8: true}, mode: observe}
        - {name: in-order, time: {monotonic: true}, mode: observe}""",
    "SLUICEGATE__DEFAULTS__REHEARSE": "{message.timestamp.after.max.ms: [1m]}",
    "SLUICEGATE__REQUESTS": """
        - {name: known-teams, client_id: "team-*", mode: observe}
        - {name: idempotent, match: {client_id: "client-1*"}, idempotent: true}""",
}
BAD = batch([Rec(NOW + 3_600_000), Rec(NOW, None), Rec(NOW, b"k", b"\xff")])
REQUEST = walk_produce_request(bytearray(produce_body(9, [topic_data("t", (0, BAD))])), 9, 0, 10)


def counted_series(play: Playbook) -> set[str]:
    """Names and labels of all that is counted."""
    lines = (
        generate_latest(MetricsCollector(lambda: metrics_of(Snapshot(play.parts.observer.counted(), 0))))
        .decode()
        .splitlines()
    )
    return {line.rpartition(" ")[0] for line in lines if not line.startswith("#")}


def test_metric_series_and_log_lines_do_not_grow_with_violating_clients() -> None:
    play = Playbook(**SETTINGS)
    policy_of = play.parts.rules.rulebook.policy_of
    grown: list[set[str]] = []
    began = monotonic()
    with capture_logs() as lines:
        for number in range(CLIENTS):
            client = ClientIdentity(f"10.0.0.1:{number}", f"client-{number}")
            validated = validate_request(
                REQUEST,
                {},
                policy_of,
                ValidationLimits(),
                lambda: NOW,
                Decompressor(),
                DecompressionBudget(1 << 20, 1000, lambda: None),
                client=client.for_rules(),
            )
            play.parts.observer.settled(settled_outcome(client, REQUEST, validated))
            play.loop.run_steps()
            if number + 1 in (EVERY_KIND, CLIENTS):
                grown.append(counted_series(play))

    assert grown[0] == grown[1]
    named = {client for each in grown[1] for client in re.findall(r'client_id="(client-\d+)"', each)}
    assert len(named) == MAX_CLIENTS
    assert sum("sluicegate_violations_total" in each for each in grown[1]) <= MAX_KINDS
    told = [each for each in grown[1] if "sluicegate_rule_batches_total" in each]
    rules = ("keyed", "idempotent", "text", "in-order", "known-teams")
    assert len(told) == len(rules)
    assert all(any(f'outcome="rejected",rule="{rule}"' in each for each in told) for rule in rules)
    # Each kind may log a few lines at once and more over time, so a slow machine logs more lines.
    assert len(lines) <= 5 * (LINES_AT_ONCE + LINES_A_SECOND * (monotonic() - began))
