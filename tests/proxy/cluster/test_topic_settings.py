"""Topic settings are read from brokers of every kind: working, silent, and failing because of one topic."""

import asyncio
import tracemalloc
from collections.abc import Iterable
from time import monotonic

import pytest
from structlog.testing import capture_logs

from sluicegate.config.topics import TopicKeys
from sluicegate.config.upstream import Upstream
from sluicegate.config.values.address import HostPort
from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.messages.cluster import DESCRIBE_CONFIGS_RESPONSE
from sluicegate.protocol.messages.schema import Value
from sluicegate.proxy.cluster.topic_settings import FIRST_BATCH_SECONDS, MAX_KNOWN, TopicSettingsReader
from sluicegate.proxy.cluster.topics import TOPICS_AT_ONCE
from sluicegate.validation.from_keys import compile_policies
from sluicegate.validation.in_force import RulesInForce
from sluicegate.validation.rulebook import Rulebook
from tests.broker.ports import free_ports
from tests.proxy.scripted_broker import (
    CLOSE,
    SILENCE,
    Answer,
    ScriptedBroker,
    api_versions_response,
    asked_topics,
    result_for,
    topic_settings,
)

BEFORE, MAX_BYTES = "message.timestamp.before.max.ms", "max.message.bytes"
SAID = {BEFORE: "7"}
USING_FILE = "topic settings cannot be read, only the configuration applies"
TOPIC_AUTHORIZATION_FAILED = 29
READ_AGAIN = "topic settings are read again"


class SettingsAsker:
    """A reader of topic settings and the rules that receive the settings."""

    def __init__(self, *addresses: HostPort, seconds: float = 5) -> None:
        upstream = Upstream(bootstrap=addresses, connect_timeout_seconds=seconds)
        self.rules = RulesInForce(Rulebook(compile_policies(TopicKeys())))
        self.settings = TopicSettingsReader(upstream, None, self.rules)

    async def wait_until_known(self, *topics: str) -> float:
        """Wait for the settings of topics like a first batch, and return the duration of the wait (s)."""
        started = monotonic()
        waiting = self.settings.settings_pending(topics)
        if waiting is not None:
            assert await waiting is None
        return monotonic() - started

    def is_learnt(self, topic: str) -> bool:
        return self.rules.rulebook.policy_of(topic).before_max_ms == 7

    async def wait_until_learnt(self, topic: str) -> None:
        async with asyncio.timeout(10):
            while not self.is_learnt(topic):  # noqa: ASYNC110  # nothing announces it
                await asyncio.sleep(0.01)


def scripted_settings_broker(respond: Answer) -> ScriptedBroker:
    return ScriptedBroker({ApiKey.DESCRIBE_CONFIGS: respond})


def settings_of_any_topic(_topic: str) -> Value:
    return SAID


async def test_without_a_broker_the_files_settings_apply_and_no_client_waits() -> None:
    asker = SettingsAsker(HostPort("127.0.0.1", free_ports(1)))

    with capture_logs() as lines:
        for topic in ("a", "b"):
            await asker.wait_until_known(topic)

    assert [line["event"] for line in lines] == [USING_FILE]
    assert asker.settings.settings_pending(["a", "b", "c"]) is None  # no batch waits
    asker.settings.close()


async def test_pending_topics_are_requested_together() -> None:
    async with scripted_settings_broker(topic_settings(settings_of_any_topic)) as kafka:
        asker = SettingsAsker(kafka.address)

        await asyncio.gather(*(asker.wait_until_known(f"t{i}", "shared") for i in range(300)))

        assert all(asker.is_learnt(topic) for topic in ("t0", "t299", "shared"))
        assert kafka.connections == kafka.asked[ApiKey.DESCRIBE_CONFIGS] == 1
        assert asker.settings.settings_pending(["t0", "t299", "shared"]) is None


async def test_excess_topics_are_requested_in_further_requests() -> None:
    async with scripted_settings_broker(topic_settings(settings_of_any_topic)) as kafka:
        asker = SettingsAsker(kafka.address)

        await asker.wait_until_known(*(f"t{i}" for i in range(3 * TOPICS_AT_ONCE)))

        await asker.wait_until_learnt("t0")  # on a busy machine a first batch may have waited long enough
        await asker.wait_until_learnt(f"t{3 * TOPICS_AT_ONCE - 1}")
        assert kafka.asked[ApiKey.DESCRIBE_CONFIGS] == 3
        assert kafka.most_open <= 2  # the previous connection may still be closing


async def test_a_silent_broker_delays_first_batches_once_on_one_connection() -> None:
    async with scripted_settings_broker(lambda _v, _b: SILENCE) as kafka:
        asker = SettingsAsker(kafka.address)

        waited = await asyncio.gather(*(asker.wait_until_known(f"t{i}") for i in range(300)))

        assert max(waited) < 10 * FIRST_BATCH_SECONDS  # all at once, not one after the other
        assert asker.settings.settings_pending(["later"]) is None  # no batch waits again
        assert kafka.connections == 1
        asker.settings.close()


async def test_late_settings_are_used_and_batches_wait_again() -> None:
    async with scripted_settings_broker(topic_settings(settings_of_any_topic)) as kafka:
        kafka.may_response.clear()
        asker = SettingsAsker(kafka.address)
        await asker.wait_until_known("late")
        assert not asker.is_learnt("late")

        kafka.may_response.set()

        await asker.wait_until_learnt("late")
        assert await asker.wait_until_known("next") < FIRST_BATCH_SECONDS
        assert asker.is_learnt("next")


async def test_recovered_broker_is_queried_in_background() -> None:
    answers: list[Answer] = [lambda _v, _b: CLOSE] * 2

    def respond(version: int, body: bytes) -> object:
        return (answers.pop() if answers else topic_settings(settings_of_any_topic))(version, body)

    async with scripted_settings_broker(respond) as kafka:
        asker = SettingsAsker(kafka.address)
        with capture_logs() as lines:
            await asker.wait_until_known("t")
            assert asker.settings.settings_pending(["t", "u"]) is None

            await asker.wait_until_learnt("t")
            await asker.wait_until_learnt("u")

    assert [line["event"] for line in lines] == [USING_FILE, READ_AGAIN]


async def test_one_topic_that_fails_at_the_broker_does_not_fail_the_others() -> None:
    def respond(version: int, body: bytes) -> bytes | None:
        return CLOSE if "bad" in asked_topics(version, body) else topic_settings(settings_of_any_topic)(version, body)

    async with scripted_settings_broker(respond) as kafka:
        asker = SettingsAsker(kafka.address)
        with capture_logs() as lines:
            await asker.wait_until_known(*(f"t{i}" for i in range(250)), "bad", *(f"t{i}" for i in range(250, 499)))
            for topic in range(499):  # on a busy machine a first batch may have waited long enough
                await asker.wait_until_learnt(f"t{topic}")

        assert not asker.is_learnt("bad")
        assert [line["event"] for line in lines] == [USING_FILE]
        assert kafka.asked[ApiKey.DESCRIBE_CONFIGS] <= 20
        assert asker.settings.settings_pending(["bad"]) is None  # not requested again at once


async def test_a_broker_that_fails_for_every_topic_gets_few_requests() -> None:
    async with scripted_settings_broker(lambda _v, _b: CLOSE) as kafka:
        asker = SettingsAsker(kafka.address)

        await asker.wait_until_known(*(f"t{i}" for i in range(TOPICS_AT_ONCE)))
        asker.settings.close()

        assert kafka.asked[ApiKey.DESCRIBE_CONFIGS] <= 20


@pytest.mark.parametrize("name", ["x" * 40_000, "x" * 250, "", ".", "..", "a b", "ä", "\ud800"])
async def test_impossible_topic_names_are_not_requested(name: str) -> None:
    async with scripted_settings_broker(topic_settings(settings_of_any_topic)) as kafka:
        asker = SettingsAsker(kafka.address)
        await asker.wait_until_known("good")

        assert asker.settings.settings_pending([name]) is None
        await asker.settings.refresh()

        assert asker.is_learnt("good")
        assert kafka.asked[ApiKey.DESCRIBE_CONFIGS] == 2


async def test_nonexistent_topic_names_cause_few_requests_and_little_memory() -> None:
    """Clients invent 10,000 names a second, and one topic is real."""
    async with scripted_settings_broker(topic_settings(lambda topic: None if topic.startswith("0") else SAID)) as kafka:
        asker = SettingsAsker(kafka.address)
        await asker.wait_until_known("honest")
        started = monotonic()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]

        for burst in range(20):
            asker.settings.settings_pending([f"0{burst:0200}{i:06}" for i in range(1000)])
            await asyncio.sleep(0.05)  # the pace of the bursts
            assert asker.settings.settings_pending(["honest"]) is None
        kept = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        asker.settings.close()

        assert kafka.asked[ApiKey.DESCRIBE_CONFIGS] <= 2 + 10 * (monotonic() - started)
        assert kept < 8_000_000


async def test_missing_topic_is_requested_again_after_one_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluicegate.proxy.cluster.topic_settings._ABSENT_SECONDS", 0.2)
    there: set[str] = set()
    async with scripted_settings_broker(topic_settings(lambda topic: SAID if topic in there else None)) as kafka:
        asker = SettingsAsker(kafka.address)
        await asker.wait_until_known("t")
        assert asker.settings.settings_pending(["t"]) is None

        there.add("t")
        await asyncio.sleep(0.25)  # the test measures a time
        await asker.wait_until_known("t")

        assert asker.is_learnt("t")


async def test_unused_topics_are_evicted_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sluicegate.proxy.cluster.topic_settings.MAX_KNOWN", 100)
    async with scripted_settings_broker(topic_settings(settings_of_any_topic)) as kafka:
        asker = SettingsAsker(kafka.address)
        await asker.wait_until_known("used")
        for first in range(0, 300, 50):
            await asker.wait_until_known("used", *(f"t{i}" for i in range(first, first + 50)))

        assert asker.is_learnt("used")
        assert asker.is_learnt("t299")
        assert not asker.is_learnt("t0")
    assert MAX_KNOWN > 100


# -- wrong responses ---------------------------------------------------------------------------------------------


def describe_configs_results(of: Iterable[Value]) -> Answer:
    found = list(of)
    return lambda version, _: DESCRIBE_CONFIGS_RESPONSE.build({"throttle_time_ms": 0, "results": found}, version)


async def test_topics_that_were_not_requested_are_ignored() -> None:
    async with scripted_settings_broker(
        describe_configs_results([result_for("other", SAID), result_for("t", SAID)])
    ) as kafka:
        asker = SettingsAsker(kafka.address)
        await asker.wait_until_known("t")

        assert asker.is_learnt("t")
        assert not asker.is_learnt("other")


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        ([result_for("t", None, 29)], "TOPIC_AUTHORIZATION_FAILED (29)"),
        ([result_for("t", None, 17)], "INVALID_TOPIC_EXCEPTION (17)"),
        ([result_for("t", None, 1234)], "error 1234"),
        ([result_for("t", {BEFORE: "9" * 5000})], BEFORE),
        ([result_for("t", {BEFORE: str(2**63)})], BEFORE),
        ([result_for("t", {BEFORE: "-1"})], BEFORE),
        ([result_for("t", {MAX_BYTES: "٣"})], MAX_BYTES),
        ([result_for("t", {"message.timestamp.type": "x" * 5000})], "message.timestamp.type"),
        ([], "missing in the response"),
        ([result_for("t", SAID) | {"resource_type": 4}], "missing in the response"),
    ],
)
async def test_an_error_names_the_topic_and_the_configuration_applies(found: list[Value], reason: str) -> None:
    async with scripted_settings_broker(describe_configs_results(found)) as kafka:
        asker = SettingsAsker(kafka.address)
        with capture_logs() as lines:
            await asker.wait_until_known("t")

        assert [line["event"] for line in lines] == [USING_FILE]
        assert reason in lines[0]["reason"]
        assert "topic t" in lines[0]["reason"]
        assert len(lines[0]["reason"]) < 500
        assert not asker.is_learnt("t")
        assert asker.settings.settings_pending(["t"]) is None


async def test_any_number_of_failing_topics_logs_one_line_a_minute() -> None:
    def authorize_fine_only(version: int, body: bytes) -> bytes:
        topics = asked_topics(version, body)
        return describe_configs_results([result_for(topic, SAID if topic == "fine" else None, 29) for topic in topics])(
            version, body
        )

    async with scripted_settings_broker(authorize_fine_only) as kafka:
        asker = SettingsAsker(kafka.address)
        with capture_logs() as lines:
            for i in range(10):
                await asker.wait_until_known(f"t{i}")
                await asker.wait_until_known("fine")

    assert [line["event"] for line in lines] == [USING_FILE]


async def test_a_broker_without_describe_configs_is_logged() -> None:
    async with ScriptedBroker(
        {ApiKey.API_VERSIONS: api_versions_response(ApiKey.API_VERSIONS, ApiKey.PRODUCE)}
    ) as kafka:
        asker = SettingsAsker(kafka.address)
        with capture_logs() as lines:
            await asker.wait_until_known("a")

    assert "the broker does not support DescribeConfigs" in lines[0]["reason"]
    asker.settings.close()


async def test_a_failed_refresh_keeps_known_settings() -> None:
    answers: list[Answer] = [topic_settings(settings_of_any_topic)]

    def respond(version: int, body: bytes) -> object:
        return answers.pop()(version, body) if answers else CLOSE

    async with scripted_settings_broker(respond) as kafka:
        asker = SettingsAsker(kafka.address)
        await asker.wait_until_known("t")

        await asker.settings.refresh()

        assert asker.is_learnt("t")
        assert asker.settings.settings_pending(["t"]) is None


async def test_unauthorized_topic_settings_are_logged_once_for_all_topics() -> None:
    def deny_all_topics(version: int, body: bytes) -> bytes:
        results = [result_for(topic, None, TOPIC_AUTHORIZATION_FAILED) for topic in asked_topics(version, body)]
        return DESCRIBE_CONFIGS_RESPONSE.build({"throttle_time_ms": 0, "results": results}, version)

    async with scripted_settings_broker(deny_all_topics) as kafka:
        asker = SettingsAsker(kafka.address)
        with capture_logs() as lines:
            for number in range(5):
                await asker.wait_until_known(f"t{number}")
                asker.settings._quiet_until = float("-inf")

    (line,) = lines
    assert line["event"] == USING_FILE
    assert "topic t0: TOPIC_AUTHORIZATION_FAILED (29): allow the proxy's principal DescribeConfigs" in line["reason"]
