"""Clients change topic settings directly after the start of a proxy, before it has read the state topic.

The state topic does not exist yet, so the proxy cannot read it before the test creates it.
"""

import time
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess
from tests.integration.test_shared_state import create_state_topic
from tests.integration.test_topic_policies import alter, configs, described, refusal, set_values
from tests.integration.topics import UNVALIDATED, create_topic

pytestmark = pytest.mark.long

NOT_CONTROLLER = 'error="NOT_CONTROLLER"'
LONGEST_WAIT = 10.0


@pytest.fixture
def topic(kafka_bootstrap: str) -> str:
    return create_topic(kafka_bootstrap, UNVALIDATED, 1, prefix="orders")


@pytest.fixture(params=[1, 2], ids=["one-process", "two-workers"])
def started(request: pytest.FixtureRequest, kafka_bootstrap: str, tmp_path: Path) -> Iterator[ProxyProcess]:
    """Yield a proxy that has started, and whose state topic does not exist."""
    state = f"state-{uuid.uuid4().hex[:12]}"
    for other in ("presence", "history"):
        create_state_topic(kafka_bootstrap, f"{state}-{other}")
    process = ProxyProcess(tmp_path, kafka_bootstrap)
    process.config |= {
        "workers": request.param,
        "state": {"topic": state},
        "topic_policies": [{"topics": ["orders-*"], "keys": ["*"]}],
    }
    process.start(ready=False)
    process.wait_for_line('"event": "started"')  # all workers accept connections
    yield process
    process.stop()


def state_of(process: ProxyProcess) -> str:
    name: str = process.config["state"]["topic"]
    return name


def test_alterations_and_descriptions_wait_for_the_first_read_of_the_state_topic(
    started: ProxyProcess, kafka_bootstrap: str, topic: str
) -> None:
    with ThreadPoolExecutor() as pool:
        changing = pool.submit(alter, started.bootstrap, topic, sluicegate__mode="observe")
        describing = pool.submit(described, started.bootstrap, topic)
        eventually(lambda: "settings" in started.get("/metrics")[1], what="a waiting client")
        time.sleep(0.5)
        assert not changing.done()
        assert not describing.done()

        create_state_topic(kafka_bootstrap, state_of(started))

        changing.result(60)
        describing.result(60)
    assert set_values(started.bootstrap, topic) == {"sluicegate.mode": "observe"}
    assert NOT_CONTROLLER not in started.get("/metrics")[1]


def test_requests_without_settings_of_sluicegate_do_not_wait(started: ProxyProcess, topic: str) -> None:
    alter(started.bootstrap, topic, retention__ms="7200000")
    assert set_values(started.bootstrap, topic) == {}  # after the wait, with only the broker's settings
    assert described(started.bootstrap, topic)["retention.ms"].value == "7200000"


def test_after_the_wait_javas_client_repeats_the_request_until_the_topic_is_read(
    started: ProxyProcess, kafka_bootstrap: str, topic: str
) -> None:
    time.sleep(LONGEST_WAIT)
    name, text = refusal(lambda: alter(started.bootstrap, topic, sluicegate__mode="observe", retention__ms="7200000"))
    assert name == "NOT_CONTROLLER"  # librdkafka retries none of these errors
    assert text.endswith("nothing was changed: repeat the request")
    assert described(kafka_bootstrap, topic)["retention.ms"].value != "7200000"
    with ThreadPoolExecutor() as pool:
        before = started.metric("sluicegate_request_errors_total")
        changing = pool.submit(
            configs, started.bootstrap, topic, "--alter", "--add-config", "sluicegate.owner=payments"
        )
        eventually(
            lambda: started.metric("sluicegate_request_errors_total") > before + 1, 120, what="a repeated request"
        )
        assert not changing.done()

        create_state_topic(kafka_bootstrap, state_of(started))

        changing.result(300)
    assert set_values(started.bootstrap, topic) == {"sluicegate.owner": "payments"}
