"""A live proxy serves GET /api/dead-letters; another process reads the broker's topics with the proxy's own login."""

import json
import urllib.request
from pathlib import Path
from typing import Any

from tests.broker.eventually import eventually
from tests.broker.proxy_process import ProxyProcess
from tests.dead_letters.desk import from_topic, new_topic, run_json, write
from tests.dead_letters.letters import CONNECT, SLUICEGATE

RULE = {"name": "currency", "value": {"schema": {"format": "json", "text": '{"required": ["currency"]}'}}}


def asked(proxy: ProxyProcess, query: str = "") -> Any:
    """Return a result with verdicts, which takes the process some seconds."""
    found: Any = None

    def is_complete() -> bool:
        nonlocal found
        with urllib.request.urlopen(f"{proxy.admin}/api/dead-letters{query}", timeout=60) as response:
            found = json.load(response)
        listed = found["groups"] if query else found["topics"]
        return listed is not None and (not query or all(each["verdicts"] is not None for each in listed))

    eventually(is_complete, what="dead letters with verdicts")
    return found


def test_shows_the_topics_of_the_configuration_with_todays_verdicts(kafka_bootstrap: str, tmp_path: Path) -> None:
    orders = new_topic(kafka_bootstrap, "orders")
    dead, hidden = new_topic(kafka_bootstrap, "dead", 2), new_topic(kafka_bootstrap, "hidden")
    plain, empty = new_topic(kafka_bootstrap, "plain"), new_topic(kafka_bootstrap, "empty")
    of_connect = from_topic(CONNECT, orders)
    write(kafka_bootstrap, dead, [(b"a", b'{"currency": 1}', of_connect), (b"b", b'{"secret": 7}', of_connect)])
    write(kafka_bootstrap, dead, [(b"c", b"3", from_topic(SLUICEGATE, orders)), (b"d", b"4", ())], partition=1)
    keys = {
        "topics": [{"match": orders, "rules": [RULE], "samples": True}],
    }
    proxy = ProxyProcess(tmp_path, kafka_bootstrap, keys)
    write(kafka_bootstrap, plain, [(b"a", b"1", ()), (b"b", b"2", ())])
    proxy.config["admin"]["dead_letters"] = [dead, "absent", plain, empty]
    try:
        proxy.start()
        topics = asked(proxy)["topics"]
        found = asked(proxy, f"?topic={dead}")
    finally:
        proxy.stop()
    file = str(tmp_path / "sluicegate.yaml")

    assert [(each["topic"], each["problem"] is None) for each in topics] == [
        (dead, True),
        ("absent", False),
        (plain, True),
        (empty, True),
    ]
    assert (topics[2]["records"], topics[2]["read"], topics[2]["letters"]) == (2, 2, 0)
    assert topics[3] == {"topic": empty, "problem": None, "records": 0}
    assert (topics[0]["records"], topics[0]["letters"], topics[0]["from_topics"]) == (4, 3, {orders: 3})
    assert (found["records"], found["read"], found["not_letters"], found["other_groups"]) == (4, 4, 1, 0)
    shown = run_json("show", dead, "--config", file)["groups"]
    added = ("verdicts", "obstacles", "command")
    assert [{name: each[name] for name in each if name not in added} for each in found["groups"]] == shown
    connect, ours = found["groups"]
    assert [(each["code"], each["rules"], each["letters"]) for each in connect["verdicts"]] == [
        ("valid", [], 1),
        ("rule_violated", ["currency"], 1),
    ]
    assert connect["example"]["contents"]["value"] == {"size": 15, "text": '{"currency": 1}'}
    validated = run_json("validate", dead, "--config", file)["verdicts"]
    counted = {(each["code"], tuple(each["rules"])): each["letters"] for each in validated}
    for verdict in (*connect["verdicts"], *ours["verdicts"]):
        counted[verdict["code"], tuple(verdict["rules"])] -= verdict["letters"]
    assert set(counted.values()) == {0}
    assert connect["command"].startswith(f"sluicegate dead-letters redrive {dead} --config ")
    assert connect["command"].endswith(f" --group {connect['id']}")
    assert hidden not in json.dumps(topics)
