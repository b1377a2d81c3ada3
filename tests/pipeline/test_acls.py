"""If a real authorizer denies a permission, the job names the missing ACL before it writes anything."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)
from pyspark.sql import SparkSession

from sluicegate.pipeline import plan_replay, replay
from sluicegate.pipeline.jobs.repair import required_acls
from sluicegate.pipeline.kafka.acls import BrokerOperation, RequiredAcl, Resource, find_missing_acls
from sluicegate.pipeline.source.topics import Topics
from sluicegate.pipeline.writing.record_writer import CannotWriteTopic
from tests.broker.eventually import eventually
from tests.integration.secure_brokers import GuardedBroker, client_login
from tests.pipeline.commands import run, summary
from tests.pipeline.polluted import UNLIMITED

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
USER = "bob"
_OPERATIONS = {"DescribeConfigs": AclOperation.DESCRIBE_CONFIGS}
_RESOURCES = {
    "--topic": ResourceType.TOPIC,
    "--group": ResourceType.GROUP,
    "--transactional-id": ResourceType.TRANSACTIONAL_ID,
}


@pytest.fixture
def settings_of_bob(guarded: GuardedBroker) -> dict[str, str]:
    return client_login(USER, "secret") | {"ssl.ca.location": str(guarded.authority.file)}


def create_topic_with_records(
    guarded: GuardedBroker, name: str, times: list[int], headers: list[tuple[str, str | bytes | None]] | None = None
) -> str:
    """Create a topic as administrator, with records of these times."""
    admin = guarded.admin()
    for future in admin.create_topics([NewTopic(name, 1, 1, config=UNLIMITED)]).values():
        future.result(30)
    producer = Producer(
        client_login("admin", "a")
        | {"bootstrap.servers": guarded.kafka.bootstrap, "ssl.ca.location": str(guarded.authority.file)}
    )
    for time in times:
        producer.produce(name, b"v", b"k", timestamp=time, headers=headers)
    assert producer.flush(60) == 0
    return name


def grant_acl(admin: AdminClient, command: str) -> None:
    """Create the ACL that a `kafka-acls` command describes."""
    words = shlex.split(command)
    options = {
        words[i]: words[i + 1] for i in range(len(words) - 1) if words[i].startswith("--") and words[i] != "--add"
    }
    (kind,) = options.keys() & _RESOURCES.keys()
    is_prefix = options.get("--resource-pattern-type") == "prefixed"
    operation = _OPERATIONS.get(options["--operation"]) or AclOperation[options["--operation"].upper()]
    acl = AclBinding(
        *(_RESOURCES[kind], options[kind]),
        ResourcePatternType.PREFIXED if is_prefix else ResourcePatternType.LITERAL,
        *(options["--allow-principal"], "*", operation, AclPermissionType.ALLOW),
    )
    for future in admin.create_acls([acl]).values():
        future.result(30)


def acls_in(message: str) -> list[str]:
    return re.findall(r"kafka-acls [^;\n]*", message)


RIGHTS: list[Callable[[str], RequiredAcl]] = [
    lambda name: RequiredAcl(Resource.GROUP, name, BrokerOperation.READ),
    lambda name: RequiredAcl(Resource.TRANSACTIONAL_ID, f"{name}.0", BrokerOperation.WRITE),
    *(lambda name, each=each: RequiredAcl(Resource.TOPIC, name, each) for each in BrokerOperation),
]


@pytest.mark.parametrize("right_of", RIGHTS)
@pytest.mark.parametrize("exists", [True, False])
def test_each_acl_is_reported_as_missing_until_it_is_granted(
    right_of: Callable[[str], RequiredAcl],
    exists: bool,
    guarded: GuardedBroker,
    settings_of_bob: dict[str, str],
    request: Any,
) -> None:
    name = re.sub(r"\W", "-", request.node.name)
    if exists:
        create_topic_with_records(guarded, name, [])
    right, cluster = right_of(name), Topics(guarded.kafka.bootstrap, (name,), settings_of_bob).cluster()
    admin = guarded.admin()
    try:
        assert find_missing_acls(cluster, [right]) == [right]

        grant_acl(admin, right.in_words(f"User:{USER}"))

        eventually(lambda: find_missing_acls(cluster, [right]) == [], 30, "the right")
    finally:
        cluster.close()
    assert (name in admin.list_topics(timeout=30).topics) is exists  # the request did not create the topic
    assert name not in {group.group_id for group in admin.list_consumer_groups().result(30).valid}


@pytest.mark.long
def test_repair_dry_run_lists_missing_acls_sufficient_for_apply(
    guarded: GuardedBroker, settings_of_bob: dict[str, str], tmp_path: Path
) -> None:
    topic = create_topic_with_records(guarded, "acls-of-a-repair", [1_764_000_000_000_000_000, 1_764_000_000_000])
    config = tmp_path / "client.properties"
    config.write_text("".join(f"{name}={value}\n" for name, value in settings_of_bob.items()))
    about = ("repair", "--bootstrap", guarded.kafka.bootstrap, "--topic", topic, "--config", str(config))
    admin, out = guarded.admin(), ("--out", str(tmp_path / "out"))
    grant_acl(admin, RequiredAcl(Resource.TOPIC, topic, BrokerOperation.READ).in_words(f"User:{USER}"))

    blind = run(*about, *out, status=1)

    assert blind.startswith(
        "sluicegate-spark: nothing was written because ACLs are missing:\nDESCRIBE_CONFIGS on topic"
    )
    for acl in acls_in(blind):
        grant_acl(admin, acl)
    dry = run(*about, *out, status=1)
    rejected = run(*about, *out, "--apply", status=1)

    clean, prefix = f"{topic}-clean", f"sluicegate-repair.{topic}-clean."
    named = [
        *(f"{each} on topic {clean} is missing" for each in ("CREATE", "WRITE", "READ", "DESCRIBE_CONFIGS")),
        f"READ on group {prefix}* is missing",
        f"WRITE on transactional-id {prefix}* is missing",
    ]
    for each in named:
        assert f"This would stop --apply: {each}: kafka-acls " in dry
        assert each in rejected
    assert clean not in admin.list_topics(timeout=30).topics
    for acl in acls_in(rejected):
        grant_acl(admin, acl)
    run(*about, *out, "--apply")
    assert summary(tmp_path / "out")["written_by_this_run"] == 2
    (missing_acls,) = required_acls.missing_acl_sentences(
        Topics(guarded.kafka.bootstrap, (topic,), settings_of_bob), required_acls.acls_for_writing([topic])
    )
    assert missing_acls == (
        f"WRITE on topic {topic} is missing: kafka-acls --bootstrap-server HOST:PORT --add "
        f"--allow-principal User:{USER} --operation Write --topic {topic}"
    )


@pytest.mark.long
def test_replay_dry_run_lists_missing_acls_sufficient_for_apply(
    spark: SparkSession, guarded: GuardedBroker, settings_of_bob: dict[str, str], tmp_path: Path
) -> None:
    admin, bootstrap, time_ms = guarded.admin(), guarded.kafka.bootstrap, 1_764_000_000_000
    target = create_topic_with_records(guarded, "acls-of-a-replay", [])
    message = {"reason": "timestamp_in_future", "topic": target, "partition": "0", "index": "0"}
    message |= {"timestamp": f"{time_ms}000000"}
    headers: list[tuple[str, str | bytes | None]] = [(f"sluicegate.{name}", text) for name, text in message.items()]
    dead = create_topic_with_records(guarded, f"{target}.dead", [time_ms], headers)
    file = tmp_path / "sluicegate.yaml"
    file.write_text(
        f"upstream: {{bootstrap: ['{bootstrap}'], topic_settings: false}}\nlisten: {{bootstrap: '127.0.0.1:1'}}\n"
    )

    def missing_acls(work: Any) -> list[str]:
        """Return the missing ACLs as the error names them, and create them."""
        with pytest.raises(CannotWriteTopic, match="nothing was written because ACLs are missing") as raised:
            work(spark, bootstrap, dead, tmp_path / "out", file, settings=settings_of_bob, fix="unit")
        for acl in acls_in(str(raised.value)):
            grant_acl(admin, acl)
        return str(raised.value).splitlines()[1:]

    for operation in (BrokerOperation.READ, BrokerOperation.DESCRIBE_CONFIGS):
        grant_acl(admin, RequiredAcl(Resource.TOPIC, dead, operation).in_words(f"User:{USER}"))
    group = [line.partition(": ")[0] for line in missing_acls(plan_replay)]
    assert [re.sub(r"\.[^. ]* is", ".ID is", line) for line in group] == [
        f"READ on group sluicegate-replay.{dead}.ID is missing"
    ]
    dry = plan_replay(spark, bootstrap, dead, tmp_path / "out", file, settings=settings_of_bob, fix="unit")
    named = [line.partition(": ")[0] for line in dry.warnings if "is missing" in line]
    assert named[0].startswith(f"WRITE on transactional-id sluicegate-replay.{dead}.")
    assert named[1:] == [f"WRITE on topic {target} is missing"]

    assert len(missing_acls(replay)) == 1
    assert len(missing_acls(replay)) == 1
    assert replay(spark, bootstrap, dead, tmp_path / "out", file, settings=settings_of_bob, fix="unit").summary[
        "topics"
    ] == {dead: {"records": 1, "replayed": 1, "corrected": 1, "remaining": 0}}
