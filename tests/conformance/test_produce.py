"""Every case is sent twice: straight to a broker that has the limits itself, and through sluicegate, with the same
limits, to a broker that has none. The two answers must be equal, field by field, and so must the two logs.
"""

import re
import time
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from protocol.messages import produce
from tests.broker.eventually import eventually
from tests.broker.kafka import Kafka
from tests.broker.proxy_process import ProxyProcess
from tests.conformance.cases import CASES, TOPIC_KINDS, Case
from tests.oracle.kafka_java import KAFKA_OLD
from tests.wire.raw_client import CLOSED, PRODUCE, RawClient, produce_body, topic_data

_RANGE = re.compile(r"within \[(-?\d+), (-?\d+)\]")
_CLOCK_MS = 60_000
_FAMILIES = {name: list(cases) for name, cases in groupby(CASES, key=lambda case: case.name.split(":")[0])}
_PARTITIONS = 3
# What a broker's own topic must not judge, so that only the proxy does.
_JUDGED_BY_TOPIC = ("message.timestamp.before.max.ms", "message.timestamp.after.max.ms", "cleanup.policy")
_UNJUDGED = {"message.timestamp.after.max.ms": str(2**63 - 1)}


@pytest.fixture(scope="module")
def proxy(trusting_broker: Kafka, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProxyProcess]:
    topics = [
        {"match": f"*-{kind}", **{k: int(v) if v.isdigit() else v for k, v in settings.items()}}
        for kind, settings in TOPIC_KINDS.items()
    ]
    process = ProxyProcess(tmp_path_factory.mktemp("proxy"), trusting_broker.bootstrap, {"topics": topics})
    try:
        yield process.start()
    finally:
        process.stop()


def create_topics(broker: Kafka, topics: dict[str, dict[str, str]]) -> None:
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    new = [NewTopic(name, _PARTITIONS, 1, config=config) for name, config in topics.items()]
    for future in admin.create_topics(new).values():
        future.result(30)
    for topic in topics:
        eventually(lambda topic=topic: leads_all(broker, topic), what=f"a leader for {topic}")  # type: ignore[misc]


def leads_all(broker: Kafka, topic: str) -> bool:
    """Whether the broker has taken up every partition of a new topic."""
    with RawClient(broker.bootstrap) as client:
        return all(client.fetch_error(topic, partition) == 0 for partition in range(_PARTITIONS))


def version_limits(kafka_version: str) -> range:
    return range(0, 12) if kafka_version == KAFKA_OLD else range(3, 14)


def topic_key(address: str, topic: str, version: int) -> str | bytes:
    if version < 13:
        return topic
    with RawClient(address) as client:
        topic_id: bytes = client.metadata(topic)["topics"][0]["topic_id"]
        return topic_id


def ask(address: str, key: str | bytes, case: Case, version: int, partitions: list[tuple[int, bytes | None]]) -> Any:
    """The answer, or how the connection ended; behind acks=0, whether the connection still serves."""
    with RawClient(address) as client:
        topics = [topic_data(key, *partitions)]
        asked = client.send(PRODUCE, version, produce_body(version, topics, case.acks, case.transactional_id))
        if case.acks == 0:
            return "open" if isinstance(client.api_versions(), dict) else CLOSED
        return client.answer_to(asked, PRODUCE, version, produce.RESPONSE)


def normalised(answer: Any, now: int) -> Any:
    """Without what two moments and two clusters cannot share: the bounds' numbers, append times, topic ids, offsets
    (which the comparison of the logs holds).
    """
    if isinstance(answer, str):
        return answer
    for topic in answer["responses"]:
        topic.pop("topic_id", None)
        topic["partition_responses"].sort(key=lambda entry: entry["index"])
        for entry in topic["partition_responses"]:
            entry["base_offset"] = min(entry["base_offset"], 0)  # one difference must not make all later ones
            if entry.get("log_append_time_ms", -1) > 0:
                entry["log_append_time_ms"] = "now"
            for error in entry.get("record_errors", []):
                error["batch_index_error_message"] = _without_clock(error["batch_index_error_message"], now)
    return answer


def _without_clock(text: str, now: int) -> str:
    def as_distances(found: re.Match[str]) -> str:
        bounds = [int(number) - now for number in found.groups()]
        return f"within {[round(bound / _CLOCK_MS) for bound in bounds]}"

    return _RANGE.sub(as_distances, text)


@pytest.mark.parametrize("family", _FAMILIES)
def test_answers_and_logs_are_the_brokers_own(
    family: str, kafka_version: str, judging_broker: Kafka, trusting_broker: Kafka, proxy: ProxyProcess
) -> None:
    known = version_limits(kafka_version)
    cases = [case for case in _FAMILIES[family] if any(version in known for version in case.versions)]
    if family == "legacy" and kafka_version != KAFKA_OLD:
        assert not cases
        return
    names = {kind: f"{family}-{kind}" for kind in TOPIC_KINDS}
    create_topics(judging_broker, {names[kind]: settings for kind, settings in TOPIC_KINDS.items()})
    unjudged = {
        names[kind]: {k: v for k, v in settings.items() if k not in _JUDGED_BY_TOPIC} | _UNJUDGED
        for kind, settings in TOPIC_KINDS.items()
    }
    create_topics(trusting_broker, unjudged)
    proxied = f"127.0.0.1:{proxy.broker_port(1)}"
    differences, compared = [], 0

    for case in cases:
        for version in versions_to_try(case, known):
            topic = names[case.kind]
            now = time.time_ns() // 1_000_000
            partitions = case.build(now)
            direct_key = topic_key(judging_broker.bootstrap, topic, version)
            proxied_key = topic_key(proxy.bootstrap, topic, version)
            direct = ask(judging_broker.bootstrap, direct_key, case, version, partitions)
            through = ask(proxied, proxied_key, case, version, partitions)
            expected = normalised(direct, now)
            found = normalised(through, now)
            compared += 1
            if found != expected:
                differences.append(f"{case.name} [{case.kind}] v{version}:\n  broker {expected}\n  proxy  {found}")

    for kind, topic in names.items():
        for partition in range(_PARTITIONS):
            with RawClient(judging_broker.bootstrap) as client:
                stored = client.log_of(topic, partition)
            with RawClient(proxied) as client:
                through_proxy = client.log_of(topic, partition)
            if kind != "append-time" and stored != through_proxy:
                differences.append(f"the logs of {topic}-{partition} differ")
            elif len(stored) != len(through_proxy):
                differences.append(f"the logs of {topic}-{partition} differ in size")
    assert compared
    assert not differences, f"{len(differences)} differences in {compared} cases:\n" + "\n".join(differences[:40])
    assert proxy.log().count("judgement failed") == 0


def versions_to_try(case: Case, known: range) -> list[int]:
    """The lowest, the highest, and those where the format changed."""
    candidates = [version for version in case.versions if version in known]
    turns = {candidates[0], candidates[-1], 3, 7, 8, 9, 12, 13}
    if case.name.startswith("request"):
        return candidates
    return [
        version
        for version in candidates
        if version in turns and (version in (3, 8, 13) or version == candidates[-1] or version < 3)
    ]
