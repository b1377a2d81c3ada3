"""Requests of one client about topic settings do not harm others.

Other clients wait only briefly, the memory is proportional to the requests, and no other topic's settings change. The
test uses a real broker, with an honest client and an idle process next to the attacker.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pytest

from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.headers import response_body_at
from tests.bounds.conftest import THOROUGH
from tests.bounds.frames import compact_string, uvarint
from tests.bounds.machine import slowness
from tests.bounds.measurement import GROWTH_FACTOR, GROWTH_FREE_BYTES, LONGEST_WAIT_SECONDS
from tests.bounds.resident import PeakMeter
from tests.bounds.side_process import SideProcess
from tests.bounds.stage import DEPLOYED, HOST
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.integration.test_shared_state import create_state_topic
from tests.integration.test_topic_policies import alter, set_values
from tests.integration.topics import UNVALIDATED, create_topic
from tests.oracle.kafka_java import KAFKA_NEW
from tests.wire.raw_client import CLOSED, SILENCE, RawClient
from tests.wire.topic_changes import SCHEMAS, codes_in

pytestmark = pytest.mark.long

MODE, RULES = "sluicegate.mode", "sluicegate.rules"
_SECONDS = 60
_NOISE_SECONDS = 0.0 if THOROUGH else 1.0
"""In the short form, other tests run at the same time."""
_CONNECTIONS = 3


@dataclass
class Attacked:
    """A proxy, whose topic `guarded` belongs to a team with settings, and the processes beside it."""

    proxy: ProxyProcess
    guarded: str
    mine: str
    honest: SideProcess
    neighbour: SideProcess

    def send(self, api: ApiKey, version: int, body: bytes) -> tuple[list[bytes | str], int]:
        """Send one request on each of some connections at once. Return the responses, and the bytes on the wire."""
        clients = [RawClient(f"{HOST}:{self.proxy.broker_port(1)}", _SECONDS) for _ in range(_CONNECTIONS)]
        try:
            for client in clients:
                client.send(api, version, body)
            frames = [client.receive(_SECONDS) for client in clients]
        finally:
            for client in clients:
                client.socket.close()
        sizes = [len(frame) for frame in frames if isinstance(frame, bytes)]
        return frames, sum(sizes) + _CONNECTIONS * len(body)


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    """Yield a proxy in front of two brokers. The attacker uses the first broker, the honest client the second."""
    kafka = Kafka(KAFKA_NEW, tmp_path_factory.mktemp("kafka"), size=2).start()
    try:
        yield from _attacked(kafka.bootstrap, tmp_path_factory)
    finally:
        kafka.stop()


def _attacked(kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Attacked]:
    state = create_topic(kafka_bootstrap, {"cleanup.policy": "compact"}, partitions=1, prefix="state")
    for other in ("presence", "history"):
        create_state_topic(kafka_bootstrap, f"{state}-{other}")
    guarded = create_topic(kafka_bootstrap, UNVALIDATED, 1, prefix="payments")
    mine = create_topic(kafka_bootstrap, UNVALIDATED, 1, prefix="orders")
    proxy = ProxyProcess(tmp_path_factory.mktemp("proxy"), kafka_bootstrap)
    proxy.environment = dict(DEPLOYED)
    keys = ["mode", "rules", "enforce.*"]
    proxy.config |= {
        "state": {"topic": state},
        "topic_policies": [{"topics": ["orders-*", "payments-*"], "keys": keys}],
    }
    proxy.start()
    beside: list[SideProcess] = []
    try:
        alter(proxy.bootstrap, guarded, sluicegate__mode="observe")
        beside.append(SideProcess("tests.bounds.honest_client", host=HOST, port=proxy.broker_port(2), ca_file=None))
        beside.append(SideProcess("tests.bounds.idle_neighbour"))
        for each in beside:
            each.wait_ready()
        yield Attacked(proxy, guarded, mine, *beside)
    finally:
        for each in beside:
            each.stop()
        proxy.stop()


def alteration(*resources: tuple[str, dict[str, str]]) -> bytes:
    """Return the body of IncrementalAlterConfigs v1 that sets settings of topics."""
    return _array(
        b"\2"
        + _text(topic)
        + _array(_text(key) + b"\0" + _text(value) + b"\0" for key, value in settings.items())
        + b"\0"
        for topic, settings in resources
    ) + (b"\0" + b"\0")


def description(*topics: str) -> bytes:
    """Return the body of DescribeConfigs v4 that asks for one setting of each topic."""
    return _array(b"\2" + _text(topic) + _array([_text(MODE)]) + b"\0" for topic in topics) + b"\0\0\0"


def _text(text: str) -> bytes:
    return compact_string(text.encode())


def _array(items: Iterable[bytes]) -> bytes:
    all_items = list(items)
    return uvarint(len(all_items) + 1) + b"".join(all_items)


def many_topics(key: str, count: int, owner: str = "orders") -> bytes:
    return alteration(*((f"{owner}-{number}", {key: "observe"}) for number in range(count)))


LONGEST = 32_767  # the longest string in a request; brokers close the connection for a longer one
ATTACKS: dict[str, Callable[[str], bytes]] = {
    "100,000 topics with a setting each": lambda _: many_topics(MODE, 99_999),
    "9,000 topics with a setting each": lambda _: many_topics(MODE, 9_000),
    "9,000 topics with a hostile key each": lambda _: many_topics("sluicegate." + "k" * 500, 9_000),
    "9,000 topics of another team": lambda _: many_topics(MODE, 9_000, "payments"),
    "19,000 keys of one topic": lambda mine: alteration(
        (mine, {f"sluicegate.{number}\x00\u202e": "v" for number in range(19_000)})
    ),
    "a value of 10 MB": lambda mine: alteration((mine, {RULES: "x" * 10_000_000})),
    "900 sets of rules of 32 kB": lambda _: alteration(*((f"orders-{n}", {RULES: _many_rules()}) for n in range(900))),
    "brackets that are nested 16,000 deep": lambda mine: alteration((mine, {RULES: "[" * 16_000 + "]" * 16_000})),
    "a pattern that backtracks": lambda mine: alteration(
        (
            mine,
            {RULES: json.dumps([{"name": "r", "headers": {"patterns": {"h": f"/({'a?' * 9_000}{'a' * 9_000})+b/"}}}])},
        )
    ),
    "8,000 names of clients": lambda mine: alteration(
        (mine, {"sluicegate.enforce.clients": ",".join(f"*{n}*" for n in range(5_000))})
    ),
}


def _many_rules() -> str:
    rules = [{"name": f"r{number}", "value": {"required": True}} for number in range(690)]
    return json.dumps(rules)[:LONGEST]


@pytest.mark.parametrize("attack", ATTACKS)
def test_hostile_alterations_delay_no_other_client_and_change_nothing(attacked: Attacked, attack: str) -> None:
    frames = attack_and_measure(attacked, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, ATTACKS[attack](attacked.mine))

    codes = {code for frame in frames if isinstance(frame, bytes) for code in codes_of(frame)}
    assert 0 not in codes
    assert codes or set(frames) == {CLOSED}
    assert set_values(attacked.proxy.bootstrap, attacked.guarded) == {MODE: "observe"}
    assert set_values(attacked.proxy.bootstrap, attacked.mine) == {}


@pytest.mark.parametrize("topics", [10_000, 190_000])
def test_large_describe_requests_delay_no_other_client(attacked: Attacked, topics: int) -> None:
    attack_and_measure(
        attacked, ApiKey.DESCRIBE_CONFIGS, 4, description(*(f"orders-{number}" for number in range(topics)))
    )


def attack_and_measure(attacked: Attacked, api: ApiKey, version: int, body: bytes) -> list[bytes | str]:
    """Send the request and return the responses. Raises AssertionError if others wait or memory grows too much."""
    assert attacked.proxy.process is not None
    attacked.honest.ask("start")
    meter = PeakMeter(attacked.proxy.process.pid)
    before = meter.begin()
    attacked.neighbour.ask("start")
    frames, wired = attacked.send(api, version, body)
    found = attacked.honest.ask("waits")
    idle = attacked.neighbour.ask("wait")["longest"]
    attacked.honest.ask("stop")
    grown = meter.end() - before
    longest = max(found["waits"].values())
    print(f"waits {found['waits']}, an idle neighbour {idle:.3f} s; +{grown >> 20} MiB, {wired >> 20} MiB on the wire")
    assert not found["failures"]
    assert SILENCE not in frames
    assert longest <= (LONGEST_WAIT_SECONDS + _NOISE_SECONDS) * slowness() + idle
    assert grown <= GROWTH_FREE_BYTES + GROWTH_FACTOR * wired
    assert attacked.proxy.get("/livez")[0] == 200
    assert "Traceback" not in attacked.proxy.log()
    return frames


def codes_of(frame: bytes) -> set[int]:
    """Return the error codes of a response of IncrementalAlterConfigs v1."""
    body_at = response_body_at(frame, 1)
    return set(codes_in(SCHEMAS["IncrementalAlterConfigsResponse"].parse(frame[body_at:], 1)))
