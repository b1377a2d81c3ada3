"""`sluicegate dead-letters list` and `show` work with a real broker."""

import time
from collections import Counter
from pathlib import Path

from confluent_kafka import Producer

from tests.broker.proxy_process import ProxyProcess
from tests.dead_letters.desk import SECONDS, configuration, from_topic, new_topic, run, run_json, stored, write
from tests.dead_letters.letters import CONNECT, SLUICEGATE, SPRING, STREAMS

HOUR = {"message.timestamp.before.max.ms": "1h", "message.timestamp.after.max.ms": "1h"}


def test_lists_topics_with_letters_and_their_owners(kafka_bootstrap: str, tmp_path: Path) -> None:
    dead, plain = new_topic(kafka_bootstrap, "dead", 2), new_topic(kafka_bootstrap, "plain")
    empty = new_topic(kafka_bootstrap, "empty")
    write(kafka_bootstrap, dead, [(b"a", b"1", CONNECT), (b"b", b"2", ())])
    write(kafka_bootstrap, dead, [(b"c", b"3", SLUICEGATE)], partition=1)
    write(kafka_bootstrap, plain, [(b"a", b"1", ((b"trace", b"7"),))])
    file = configuration(
        tmp_path,
        kafka_bootstrap,
        topics=[{"match": "orders", "owner": {"team": "checkout", "contact": "#checkout"}, **HOUR}],
    )

    found = run_json("list", "--config", file, "--topic", dead, "--topic", plain, "--topic", empty)

    (topic,) = found
    assert (topic["topic"], topic["records"], topic["read"], topic["letters"]) == (dead, 3, 3, 2)
    assert topic["formats"] == ["connect", "sluicegate"]
    assert topic["from_topics"] == {"orders": 2}
    assert topic["owners"] == ["checkout"]
    assert topic["accepted_now"] == 1, "the letter of quarantine has the timestamp -5"
    assert dead in run("list", "--bootstrap", kafka_bootstrap)
    assert plain not in run("list", "--bootstrap", kafka_bootstrap)


def test_shows_groups_of_all_formats(kafka_bootstrap: str) -> None:
    dead = new_topic(kafka_bootstrap, "dead", 2)
    write(kafka_bootstrap, dead, [(b"k", b"v", each) for each in (CONNECT, SPRING, STREAMS, SLUICEGATE)])
    write(kafka_bootstrap, dead, [(b"k", b"v", CONNECT), (b"k", b"v", ())], partition=1)

    found = run_json("show", dead, "--bootstrap", kafka_bootstrap)
    by_client = run("show", dead, "--bootstrap", kafka_bootstrap, "--by", "client")

    assert found["not_letters"] == 1
    first = found["groups"][0]
    assert (first["letters"], list(first["formats"])) == (2, ["connect"])
    assert sorted(format for each in found["groups"] for format in each["formats"]) == [
        "connect",
        "sluicegate",
        "spring",
        "streams",
    ]
    assert (first["error"], first["stage"]) == ("org.apache.kafka.connect.errors.DataException", "VALUE_CONVERTER")
    assert first["example"]["from_timestamp_ms"] >= first["first_ms"]
    assert first["example"] == {
        "partition": first["example"]["partition"],
        "offset": 0,
        "from_topic": "orders",
        "from_partition": 2,
        "from_offset": 41,
        "from_timestamp_ms": first["example"]["from_timestamp_ms"],
        "obstacle": None,
        "contents": None,
    }
    assert [line.split() for line in by_client.splitlines()[1:]] == [
        ["client", "letters"],
        ["to-warehouse", "2"],
        ["-", "1"],
        ["packers", "1"],
        ["shop", "1"],
    ]


def test_contents_are_shown_if_the_policy_of_the_original_topic_allows_it(kafka_bootstrap: str, tmp_path: Path) -> None:
    dead = new_topic(kafka_bootstrap, "dead")
    value = b'{"card": "4111111111111111", "n": 1}'
    topics = ("shown", "masked", "hidden")
    write(kafka_bootstrap, dead, [(b"key-1", value, from_topic(STREAMS, each)) for each in topics])
    write(kafka_bootstrap, dead, [(b"k", b"4111 in no JSON", from_topic(CONNECT, "masked"))])
    sensitive = [{"name": "card", "fields": ["card"], "action": "mask", "replacement": "****"}]
    file = configuration(
        tmp_path,
        kafka_bootstrap,
        topics=[{"match": "shown", "samples": True}, {"match": "masked", "sensitive": sensitive}],
    )

    groups = run_json("show", dead, "--config", file)["groups"]
    text = run("show", dead, "--config", file)

    assert len(groups) == 2, "a cause does not depend on the original topic"
    contents = {each["example"]["from_topic"]: each["example"]["contents"] for each in groups}
    assert contents["shown"]["value"] == {"size": len(value), "text": value.decode()}
    assert contents["shown"]["key"] == {"size": 5, "text": "key-1"}
    assert contents["masked"] is None, "a value that cannot be masked is not shown"
    assert "4111 in no JSON" not in text


def test_sensitive_fields_are_masked(kafka_bootstrap: str, tmp_path: Path) -> None:
    dead = new_topic(kafka_bootstrap, "dead")
    write(kafka_bootstrap, dead, [(b"key-1", b'{"card": "4111111111111111", "n": 1}', from_topic(STREAMS, "masked"))])
    sensitive = [{"name": "card", "fields": ["card"], "action": "mask", "replacement": "****"}]
    file = configuration(tmp_path, kafka_bootstrap, topics=[{"match": "masked", "sensitive": sensitive}])

    (group,) = run_json("show", dead, "--config", file)["groups"]
    text = run("show", dead, "--config", file)

    assert text.startswith(f"{dead}: 1 dead letter in 1 group\n")
    assert group["example"]["contents"]["key"] is None
    assert group["example"]["contents"]["value"]["text"] == '{"card": "****", "n": 1}'


def test_a_missing_topic_or_option_fails_the_command(kafka_bootstrap: str) -> None:
    assert "there is no topic gone" in run("show", "gone", "--bootstrap", kafka_bootstrap, code=2)
    assert "specify --config FILE or --bootstrap" in run("list", code=2)


def test_writes_a_report_also_of_letters_without_a_date(kafka_bootstrap: str, tmp_path: Path) -> None:
    dead = new_topic(kafka_bootstrap, "dead", message_timestamp_after_max_ms=str(2**63 - 1))
    report = tmp_path / "report.html"
    producer = Producer({"bootstrap.servers": kafka_bootstrap})
    nanoseconds = 1_764_500_000_000_000_000
    producer.produce(dead, b"v", timestamp=nanoseconds, headers=[(name.decode(), data) for name, data in CONNECT])
    producer.flush(SECONDS)
    options = (dead, "--bootstrap", kafka_bootstrap, "--html")

    assert f"{nanoseconds} ms to {nanoseconds} ms" in run("show", *options, str(report))
    assert f"{nanoseconds} ms to {nanoseconds} ms" in report.read_text()
    assert "No such file or directory" in run("show", *options, str(tmp_path / "absent" / "report.html"), code=2)


def test_verdicts_equal_the_responses_of_a_proxy(kafka_bootstrap: str, tmp_path: Path) -> None:
    """The oracle is a running proxy, to which the same records are produced one by one."""
    original, dead = new_topic(kafka_bootstrap, "orders"), new_topic(kafka_bootstrap, "dead")
    now = time.time_ns() // 1_000_000
    times = [now, now * 1_000_000, now // 1000, now - 7_200_000, now + 7_200_000, now - 1000]
    values = [b'{"n": 1}', b"no JSON", b'{"n": 2}', None]
    records = [(at, value) for at in times for value in values]
    own = from_topic(SLUICEGATE, original)
    letters = [
        tuple((name, str(at).encode() if name == b"sluicegate.timestamp" else text) for name, text in own)
        for at, _ in records
    ]
    write(kafka_bootstrap, dead, [(b"k", value, each) for (_, value), each in zip(records, letters, strict=True)])
    topics = [
        {
            "match": original,
            **HOUR,
            "rules": [{"name": "json", "value": {"json": {}}}],
        }
    ]
    file = configuration(tmp_path, kafka_bootstrap, topics=topics)
    folder = tmp_path / "proxy"
    folder.mkdir()
    proxy = ProxyProcess(folder, kafka_bootstrap, {"topics": topics})
    try:
        proxy.start()
        responses = Counter(produced(proxy.bootstrap, original, at, value) for at, value in records)
    finally:
        proxy.stop()

    found = run_json("validate", dead, "--config", file)
    text = run("validate", dead, "--config", file)
    at_present = run_json("validate", dead, "--config", file, "--time", "now")

    by_code = {each["code"]: each["letters"] for each in found["verdicts"]}
    timed = by_code["timestamp_in_future"] + by_code["timestamp_too_old"]
    assert responses == {0: found["accepted"], 32: timed, 87: by_code["rule_violated"]}
    in_future = next(each for each in found["verdicts"] if each["code"] == "timestamp_in_future")
    assert in_future["valid_after"] == {"fix unit": 3, "fix clamp": 6, "fix now": 6}, (
        "nanoseconds are a unit, two hours are not"
    )
    assert f"a proxy would accept {found['accepted']} of {len(records)} dead letters now" in text
    assert at_present["accepted"] == sum(value != b"no JSON" for _, value in records)


def produced(bootstrap: str, topic: str, at: int, value: bytes | None) -> int:
    """Return the error code of one record, or 0."""
    codes: list[int] = []
    producer = Producer({"bootstrap.servers": bootstrap, "message.timeout.ms": 30_000})
    producer.produce(topic, value, b"k", 0, lambda error, _: codes.append(error.code() if error else 0), timestamp=at)
    producer.flush(SECONDS)
    return codes[0]


def test_reads_what_a_proxy_has_quarantined_and_redrives_it_fixed(kafka_bootstrap: str, tmp_path: Path) -> None:
    original, dead = new_topic(kafka_bootstrap, "orders"), new_topic(kafka_bootstrap, "dead")
    topics = [{"match": original, "quarantine": dead, **HOUR}]
    folder = tmp_path / "proxy"
    folder.mkdir()
    proxy = ProxyProcess(folder, kafka_bootstrap, {"topics": topics})
    nanoseconds = time.time_ns()
    try:
        proxy.start()
        assert produced(proxy.bootstrap, original, nanoseconds, b"1") == 32
    finally:
        proxy.stop()
    file = configuration(tmp_path, kafka_bootstrap, topics=topics)

    (group,) = run_json("show", dead, "--config", file)["groups"]
    (verdict,) = run_json("validate", dead, "--config", file)["verdicts"]
    plan = run_json("redrive", dead, "--config", file, "--fix", "unit")
    options = ("--fix", "unit", "--offsets", plan["offsets"], "--apply", plan["digest"])

    assert (group["error"], group["formats"]) == ("timestamp_in_future", {"sluicegate": 1})
    assert group["example"]["from_timestamp_ms"] == nanoseconds
    assert group["example"]["from_topic"] == original
    assert list(group["clients"]) == ["rdkafka"]
    assert (verdict["code"], verdict["valid_after"]["fix unit"]) == ("timestamp_in_future", 1)
    assert run_json("redrive", dead, "--config", file, *options)["written"] == 1
    assert sum(each.timestamp()[1] == nanoseconds // 1_000_000 for each in stored(kafka_bootstrap, original)) == 1


def test_reads_letters_that_the_configuration_describes(kafka_bootstrap: str, tmp_path: Path) -> None:
    original, dead = new_topic(kafka_bootstrap, "orders"), new_topic(kafka_bootstrap, "dead")
    headers = ((b"trace", b"7"), (b"x-topic", original.encode()), (b"x-code", b"E42"), (b"x-error-at", b"line 7"))
    write(kafka_bootstrap, dead, [(b"a", b"1", headers), (b"b", b"2", headers)])
    described = {"match": dead, "headers": {"topic": "x-topic", "error": "x-code"}, "prefixes": ["x-error-"]}
    file = configuration(tmp_path, kafka_bootstrap, dead_letter_topics=[described])

    (topic,) = run_json("list", "--config", file, "--topic", dead)
    (group,) = run_json("show", dead, "--config", file)["groups"]
    mapped = ("--map", "topic=x-topic", "--map", "error=x-code", "--map", "prefixes=x-error-,x-other-")
    of_options = [
        run_json(*command, "--bootstrap", kafka_bootstrap, *mapped)
        for command in (("list", "--topic", dead), ("show", dead))
    ]
    wrong = run("show", dead, "--bootstrap", kafka_bootstrap, "--map", "colour=x", code=2)
    validated = run_json("validate", dead, "--config", file)
    plan = run_json("redrive", dead, "--config", file, "--partition", "key")
    applied = ["--partition", "key", "--offsets", plan["offsets"], "--apply", plan["digest"]]
    result = run_json("redrive", dead, "--config", file, *applied)

    assert (topic["formats"], topic["from_topics"]) == (["mapped"], {original: 2})
    assert (group["error"], group["letters"]) == ("E42", 2)
    (listed,), shown = of_options
    assert ({**listed, "accepted_now": 2}, shown["groups"]) == (topic, [group])
    assert "dead_letter_topics[0].colour" in wrong
    assert validated["accepted"] == 2
    assert result["written"] == 2
    names = [{name for name, _ in each.headers()} for each in stored(kafka_bootstrap, original)]
    assert names == [{"trace", "sluicegate.redrive.attempts"}] * 2
    assert run_json("list", "--bootstrap", kafka_bootstrap, "--topic", dead) == []
