"""Rules about a batch's client and its way of sending accept and reject batches. Exempt clients are not validated."""

import time

import pytest

from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.validation.evaluation import evaluate_request_rules
from sluicegate.validation.requests.name_pattern import EnforcedClients, Exemption, NamePattern
from sluicegate.validation.requests.request_rule import LeastVersion, RequestCheck, SentBatch, numbers_in
from sluicegate.validation.rules.rule import Client, Mode
from tests.bounds.machine import slowness

SENT = SentBatch(acks=-1, codec=Codec.ZSTD, is_idempotent=True, size=100)
CLIENT = Client("10.0.0.1:5", "team-a", "librdkafka", "2.3.0", "User:a")


@pytest.mark.parametrize(
    ("asked", "good", "bad", "advice"),
    [
        ({"acks": frozenset({-1})}, {}, {"acks": 1}, "set acks=all"),
        ({"acks": frozenset({-1, 1})}, {"acks": 1}, {"acks": 0}, "set acks=all or 1"),
        ({"codecs": frozenset({Codec.ZSTD})}, {}, {"codec": Codec.NONE}, "set compression.type=zstd"),
        ({"idempotent": True}, {}, {"is_idempotent": False}, "set enable.idempotence=true"),
        ({"most_bytes": 100}, {}, {"size": 101}, "set a lower batch.size"),
    ],
)
def test_each_request_rule_accepts_and_rejects_with_advice(
    asked: dict[str, object], good: dict[str, object], bad: dict[str, object], advice: str
) -> None:
    rule = RequestCheck("r", **asked)

    assert rule.fault(SENT._replace(**good), CLIENT) is None
    assert advice in (rule.fault(SENT._replace(**bad), CLIENT) or "")


def test_enforced_client_percentage_is_deterministic_and_monotonic() -> None:
    clients = [Client("a:1", f"team-{i}") for i in range(1000)]
    covered = {
        percent: {c.client_id for c in clients if EnforcedClients((), percent).covers(c)} for percent in range(101)
    }

    assert all(covered[percent] <= covered[percent + 1] for percent in range(100))
    assert (len(covered[0]), len(covered[100])) == (0, 1000)
    assert 60 <= len(covered[10]) <= 140
    assert all(EnforcedClients((), 2).covers(Client(address, "checkout")) for address in ("a:1", "b:2"))


def test_enforced_clients_match_by_client_id_patterns() -> None:
    clients = EnforcedClients((NamePattern("team-*"), NamePattern("checkout")))

    assert [clients.covers(Client("a:1", name)) for name in ("team-1", "checkout", "other", None)] == [
        True,
        True,
        False,
        False,
    ]
    assert EnforcedClients((NamePattern("*"),)).covers(Client("a:1"))


def test_request_rules_check_client_ids_and_software_versions() -> None:
    rule = RequestCheck(
        "r",
        client_id=NamePattern("team-*"),
        software=(LeastVersion(NamePattern("librdkafka"), "2.0"), LeastVersion(NamePattern("*java*"), "3.7")),
    )

    assert rule.fault(SENT, CLIENT) is None
    assert rule.fault(SENT, Client("a:1", "team-b")) is None, "no software reported, so no check"
    assert "set a client.id that matches team-*" in (rule.fault(SENT, Client("a:1", "app")) or "")
    assert "set a client.id" in (rule.fault(SENT, Client("a:1")) or "")
    old = rule.fault(SENT, Client("a:1", "team-b", "librdkafka", "1.9.2"))
    assert old == "librdkafka 1.9.2 is too old for this topic; use 2.0 or later"
    assert "use 3.7" in (rule.fault(SENT, Client("a:1", "team-b", "apache-kafka-java", None)) or "")


@pytest.mark.parametrize(
    ("earlier", "later"), [("1.9.2", "2"), ("2.0", "2.0.1"), ("v1.9", "1.10"), ("2.9-RC7", "2.10"), ("x", "0.1")]
)
def test_software_versions_are_compared_number_by_number(earlier: str, later: str) -> None:
    assert numbers_in(earlier) < numbers_in(later)


def test_equal_software_versions_are_recognized() -> None:
    assert numbers_in("2.3.0") == numbers_in("2.3") == numbers_in("v2.3.0-RC1") == numbers_in("2.3.0+git5")
    assert numbers_in("9" * 5000) < (10**9,)


def test_request_rules_reject_or_observe_batches_of_matching_clients() -> None:
    rules = [
        RequestCheck("acks", of_client=NamePattern("team-*"), acks=frozenset({-1})),
        RequestCheck("others", of_principal=NamePattern("User:b"), acks=frozenset({-1})),
        RequestCheck("idem", Mode.OBSERVE, idempotent=True),
        RequestCheck("size", most_bytes=50),
    ]

    found = evaluate_request_rules(rules, SENT._replace(acks=1, is_idempotent=False), CLIENT, 7)

    assert found.rejecting is not None and found.observing is not None
    assert (found.rejecting.code, found.rejecting.records) == (44, 7)
    assert found.rejecting.rules == (("acks", 0), ("size", 0))
    assert found.rejecting.message == (
        "rule acks: acks=1 is not allowed for this topic; set acks=all; "
        "rule size: a batch of 100 bytes; this topic allows at most 50: set a lower batch.size"
    )
    assert found.observing.rules == (("idem", 0),)
    nothing = evaluate_request_rules(rules[:1], SENT, CLIENT, 1)
    assert (nothing.rejecting, nothing.observing) == (None, None)


def test_exemption_matches_client_id_and_principal() -> None:
    by_both = Exemption(NamePattern("User:mm*"), NamePattern("mirror"))
    by_one = Exemption(None, NamePattern("/backfill-[0-9]+/"))

    assert by_both.covers(Client("a:1", "mirror", principal="User:mm2"))
    assert not by_both.covers(Client("a:1", "mirror"))
    assert not by_both.covers(Client("a:1", "other", principal="User:mm2"))
    assert by_one.covers(Client("a:1", "backfill-7"))
    assert not by_one.covers(Client("a:1"))


@pytest.mark.parametrize("name", ["a\ud800b", "é", "x" * 100_000, ""])
def test_name_patterns_match_names_of_any_characters_and_length(name: str) -> None:
    assert NamePattern("*").matches(name)
    assert not NamePattern("nobody").matches(name)


def test_an_unverified_principal_is_never_exempt_and_matches_only_catch_all_rules() -> None:
    unverified = Client("a:1", "mirror", is_unverified=True)
    patterns = [NamePattern(pattern) for pattern in ("*", "User:*", "/.*/", "User:mirror", "User:m*")]

    exempt = [Exemption(pattern, None).covers(unverified) for pattern in patterns]
    concerned = [RequestCheck("r", of_principal=pattern, idempotent=True).concerns(unverified) for pattern in patterns]

    assert exempt == [False] * 5
    assert concerned == [True, True, True, False, False]


def test_name_pattern_does_not_match_a_name_that_is_too_costly() -> None:
    """RE2 needs 0.2 s for an id of 32 kB with this pattern, and a client may send such an id with each request."""
    costly = NamePattern("/.*a.{300}/")
    begun = time.thread_time()

    assert not costly.matches("a" * 32_767)
    assert time.thread_time() - begun < 0.02 * slowness()
    assert costly.matches("a" * 400)
    assert NamePattern("*").matches("a" * 32_767)
