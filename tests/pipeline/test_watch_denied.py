"""A watch of several topics continues if a real authorizer denies some of them."""

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sluicegate.pipeline import TopicTrouble, watch
from sluicegate.pipeline.kafka.acls import BrokerOperation, RequiredAcl, Resource, find_missing_acls
from sluicegate.pipeline.source.topics import Topics
from tests.broker.eventually import eventually
from tests.integration.secure_brokers import GuardedBroker, client_login
from tests.pipeline.repairs import now_ms
from tests.pipeline.test_acls import create_topic_with_records, grant_acl

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
USER = "bob"
GRANT = "kafka-acls --add --allow-principal User:bob --operation {} --topic {}"


def test_a_watch_continues_without_denied_topics_until_they_are_granted(
    spark: SparkSession, guarded: GuardedBroker, tmp_path: Path
) -> None:
    admin, bootstrap = guarded.admin(), guarded.kafka.bootstrap
    topics = ["watched-open", "watched-closed", "watched-described"]
    for name, records in zip(topics, (10, 20, 30), strict=True):
        create_topic_with_records(guarded, name, [now_ms()] * records)
    settings = client_login(USER, "secret") | {"ssl.ca.location": str(guarded.authority.file)}
    with pytest.raises(TopicTrouble, match="this login may not read any of the topics: READ on topic watched-open"):
        watch(spark, bootstrap, topics, tmp_path, settings=settings)
    grant_acl(admin, GRANT.format("Read", "watched-open"))
    grant_acl(admin, GRANT.format("Describe", "watched-described"))

    def may_read(*names: str) -> bool:
        with Topics(bootstrap, names, settings).cluster() as cluster:
            return not find_missing_acls(
                cluster, [RequiredAcl(Resource.TOPIC, name, BrokerOperation.READ) for name in names]
            )

    def counts_and_warnings() -> tuple[dict[str, int], list[str], list[str]]:
        found = watch(spark, bootstrap, topics, tmp_path, settings=settings)
        records = {name: its["records"] for name, its in found.summary["topics"].items()}
        return records, found.summary["denied"], [w for w in found.warnings if "cannot be read" in w]

    eventually(lambda: may_read("watched-open"), 60, "the right to the open topic")
    records, denied, warnings = counts_and_warnings()

    assert records == {"watched-open": 10, "watched-closed": 0, "watched-described": 0}
    assert denied == ["watched-closed", "watched-described"]
    assert [re.sub(r" cannot.*", "", line) for line in warnings] == denied
    for line in warnings:
        grant_acl(admin, line[line.index("kafka-acls") :])
    eventually(lambda: may_read(*topics), 60, "the ACLs of all topics")
    assert counts_and_warnings() == ({"watched-open": 10, "watched-closed": 20, "watched-described": 30}, [], [])
