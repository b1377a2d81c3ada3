"""Real clients get the expected errors when they change topic settings while the state topic is missing."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest
from confluent_kafka.admin import NewTopic
from kafka.admin import ConfigResource as PythonResource
from kafka.admin import ConfigResourceType as PythonResourceType
from kafka.admin import KafkaAdminClient
from kafka.admin import NewTopic as PythonTopic
from kafka.errors import UnknownError

from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess
from tests.integration.test_shared_state import STATE, create_state_topic, delete_topic
from tests.integration.test_topic_policies import admin, alter, configs, described, refusal, set_values
from tests.integration.topics import UNVALIDATED, create_topic

pytestmark = pytest.mark.long

MODE, OWNER = "sluicegate.mode", "sluicegate.owner"
UNREADABLE = "state_unreadable"
ALTER, CREATE = "IncrementalAlterConfigs", "CreateTopics"


@pytest.fixture(scope="module", params=[1, 2], ids=["one-process", "two-workers"])
def proxy(
    request: pytest.FixtureRequest, kafka_bootstrap: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProxyProcess]:
    state = create_topic(kafka_bootstrap, STATE, partitions=1, prefix="state")
    for other in ("presence", "history"):
        create_state_topic(kafka_bootstrap, f"{state}-{other}")
    process = ProxyProcess(tmp_path_factory.mktemp("proxy"), kafka_bootstrap)
    process.config |= {
        "workers": request.param,
        "state": {"topic": state},
        "topic_policies": [{"topics": ["orders-*"], "keys": ["*"]}],
    }
    process.start_seconds = 300
    process.start()
    yield process
    process.stop()


@pytest.fixture
def topic(kafka_bootstrap: str) -> str:
    return create_topic(kafka_bootstrap, UNVALIDATED, 1, prefix="orders")


@pytest.fixture
def repair(proxy: ProxyProcess, kafka_bootstrap: str) -> Iterator[Callable[[], None]]:
    """Delete the state topic. Yield a function that creates it again."""
    state = proxy.config["state"]["topic"]
    delete_topic(kafka_bootstrap, state)
    eventually(lambda: UNREADABLE in proxy.get("/readyz")[1], 60, UNREADABLE)
    is_done = False

    def end() -> None:
        nonlocal is_done
        is_done = True
        create_state_topic(kafka_bootstrap, state)
        eventually(lambda: UNREADABLE not in proxy.get("/readyz")[1], 60, f"no {UNREADABLE}")

    yield end
    if not is_done:
        end()


def count_requests(proxy: ProxyProcess, api: str) -> int:
    """Return the number of requests of an API that clients have sent."""
    lines = proxy.get("/metrics")[1].splitlines()
    return sum(
        int(float(line.split()[1])) for line in lines if line.startswith(f'sluicegate_requests_total{{api="{api}"')
    )


def test_java_client_retries_change_until_it_is_stored(
    proxy: ProxyProcess, topic: str, repair: Callable[[], None]
) -> None:
    before = count_requests(proxy, ALTER)
    with ThreadPoolExecutor() as pool:
        changing = pool.submit(configs, proxy.bootstrap, topic, "--alter", "--add-config", f"{OWNER}=payments")
        eventually(lambda: count_requests(proxy, ALTER) > before + 1, 120, "a repeated request")
        assert not changing.done()

        repair()

        changing.result(300)
    assert set_values(proxy.bootstrap, topic) == {OWNER: "payments"}


def test_an_alteration_that_stored_nothing_gets_a_retriable_error(
    proxy: ProxyProcess, topic: str, repair: Callable[[], None]
) -> None:
    """librdkafka and kafka-python repeat no alteration, so their users get the error and the text."""
    name, text = refusal(lambda: alter(proxy.bootstrap, topic, sluicegate__owner="payments"))
    assert (name, text.endswith("the broker has changed nothing of this topic: repeat the request")) == (
        "NOT_CONTROLLER",
        True,
    )
    with closing(KafkaAdminClient(bootstrap_servers=proxy.bootstrap)) as client:
        resource = PythonResource(PythonResourceType.TOPIC, topic, configs={OWNER: "payments"})
        done = client.alter_configs([resource], raise_on_unknown=False, incremental=True)
        assert "the broker has changed nothing of this topic: repeat the request" in done["topic"][topic]
    assert set_values(proxy.bootstrap, topic) == {}

    repair()

    alter(proxy.bootstrap, topic, sluicegate__owner="payments")
    assert set_values(proxy.bootstrap, topic) == {OWNER: "payments"}


def test_an_alteration_stored_only_by_the_broker_gets_a_final_error(
    proxy: ProxyProcess, topic: str, kafka_bootstrap: str, repair: Callable[[], None]
) -> None:
    before = count_requests(proxy, CREATE)
    name, text = refusal(lambda: alter(proxy.bootstrap, topic, sluicegate__owner="payments", retention__ms="7200000"))
    assert (name, "the broker's settings of this request are in force" in text) == ("UNKNOWN", True)
    assert described(kafka_bootstrap, topic)["retention.ms"].value == "7200000"

    new = NewTopic(f"{topic}-a", 1, 1, config={MODE: "observe"})
    name, text = refusal(lambda: admin(proxy.bootstrap).create_topics([new])[new.topic].result(60))
    assert (name, text.startswith("the topic was created, but its sluicegate settings")) == ("UNKNOWN", True)
    with closing(KafkaAdminClient(bootstrap_servers=proxy.bootstrap)) as client, pytest.raises(UnknownError):
        client.create_topics([PythonTopic(f"{topic}-b", 1, 1, topic_configs={MODE: "observe"})])

    repair()

    assert count_requests(proxy, CREATE) == before + 2
    for each in (f"{topic}-a", f"{topic}-b"):
        assert set_values(proxy.bootstrap, each) == {}
        alter(proxy.bootstrap, each, sluicegate__mode="observe")
        assert set_values(proxy.bootstrap, each) == {MODE: "observe"}
