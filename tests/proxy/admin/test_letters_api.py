"""GET /api/dead-letters validates its parameters and returns the letters."""

import json
import threading
import time
from typing import Any

import pytest

from sluicegate.config.files.source import Source
from sluicegate.config.loading import ConfigError, Loaded, load
from sluicegate.proxy.admin.letters_api import LettersApi, ask_process
from tests.broker.eventually import eventually


def configuration_of(*topics: str, bootstrap: str = "127.0.0.1:1") -> Loaded:
    keys = {
        "upstream": {"bootstrap": [bootstrap]},
        "listen": {"bootstrap": "127.0.0.1:19092"},
        "admin": {"listen": "127.0.0.1:9650", "dead_letters": list(topics)},
    }
    return load(Source("a file.yaml", keys), {})


def body(api: LettersApi, query: str = "") -> Any:
    response = api.find(query)
    assert response.status == 200
    return json.loads(response.body)


@pytest.mark.parametrize("query", ["topic=other", "topic=", "days=7", "topic=a.dlq&client=b"])
def test_only_topics_of_the_configuration_can_be_read(query: str) -> None:
    def never(_: Loaded, __: str | None) -> list[str]:
        raise AssertionError("nothing is read")

    assert LettersApi(lambda: configuration_of("a.dlq"), never).find(query).status == 400
    assert body(LettersApi(configuration_of, never))["problem"] == "admin.dead_letters names no topic"


def test_letters_are_parsed_from_last_output_line_of_process() -> None:
    groups = {"groups": [{"id": "93a7c97e"}]}
    api = LettersApi(
        lambda: configuration_of("a.dlq"), lambda _, topic: ["{}\n", json.dumps(groups if topic else {"topics": []})]
    )

    assert body(api) == {"topics": []}
    (group,) = body(api, "topic=a.dlq")["groups"]
    assert group["command"] == "sluicegate dead-letters redrive a.dlq --config 'a file.yaml' --group 93a7c97e"


@pytest.mark.parametrize("lines", [[], ['{"problem": "no broker"}']])
def test_letters_are_unknown_when_process_prints_no_result(lines: list[str]) -> None:
    found = body(LettersApi(lambda: configuration_of("a.dlq"), lambda *_: lines))

    assert (found["topics"], found["groups"]) == (None, None)
    assert found["problem"] == ("no broker" if lines else "the dead letters could not be read in time")
    assert found["advice"]


def test_slow_letter_read_reports_reading_and_starts_one_process() -> None:
    goes_on, asked = threading.Event(), []

    def slow(_: Loaded, topic: str | None) -> list[str]:
        asked.append(topic)
        assert goes_on.wait(60)
        return ['{"topics": []}']

    api = LettersApi(lambda: configuration_of("a.dlq"), slow, wait_seconds=0.05)
    for query in ("", "topic=a.dlq", ""):
        assert body(api, query) == {"topics": None, "groups": None, "reading": True}
    goes_on.set()
    eventually(lambda: body(api) == {"topics": []}, what="the result")

    assert body(api) == {"topics": []}
    assert asked == [None], "one process for all of these requests"


@pytest.mark.long
def test_a_process_that_cannot_read_ends_in_time() -> None:
    """No broker listens at port 1: librdkafka would wait for 30 s."""
    begun = time.monotonic()

    assert ask_process(configuration_of("a.dlq"), None, seconds=2) == []
    assert time.monotonic() - begun < 2 + 10 + 5  # allows time for a start, and for a busy machine


def test_at_most_20_topics_are_shown() -> None:
    configuration_of(*(f"{number}.dlq" for number in range(20)))
    with pytest.raises(ConfigError, match="at most 20 topics"):
        configuration_of(*(f"{number}.dlq" for number in range(21)))
