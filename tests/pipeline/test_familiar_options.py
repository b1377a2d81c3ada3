"""Each option of Spark's own source either reads the same rows as there, or is rejected with its replacement."""

import json
import re
import time
from typing import Any

import pytest
from confluent_kafka import Producer
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from sluicegate.pipeline.kafka.settings import BadSetting
from sluicegate.pipeline.source.bounds import BadOption
from sluicegate.pipeline.source.datasource import TopicSource
from sluicegate.pipeline.source.options import source_options
from tests.integration.topics import UNVALIDATED, create_topic
from tests.pipeline.sparks_own import needs_sparks_own
from tests.pipeline.test_raw_source import rows_of
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import RawClient, topic_data

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
NEEDED = {"kafka.bootstrap.servers": "a:9092", "subscribe": "t"}
# The options of Spark's KafkaSourceProvider and of Kafka's ConsumerConfig.
REJECTED = {
    "kafka.group.id": "uses no consumer group",
    "groupIdPrefix": "uses no consumer group",
    "kafkaConsumer.pollTimeoutMs": "use kafka.socket.timeout.ms",
    "fetchOffset.numRetries": "retries failed requests for 30 s",
    "fetchOffset.retryIntervalMs": "retries failed requests for 30 s",
    "minOffsetsPerTrigger": "the trigger's interval",
    "maxTriggerDelay": "the trigger's interval",
    "topic": "only reads",
    "kafka.auto.offset.reset": "startingOffsets",
    "kafka.key.deserializer": "read as bytes",
    "kafka.value.deserializer": "read as bytes",
    "kafka.enable.auto.commit": "checkpoint",
    "kafka.interceptor.classes": "read as bytes",
    "kafka.sasl.jaas.config": "kafka.sasl.username and kafka.sasl.password",
    "kafka.ssl.truststore.location": "use kafka.ssl.ca.location",
    "kafka.ssl.keystore.location": "use kafka.ssl.certificate.location",
    "kafka.request.timeout.ms": "use kafka.socket.timeout.ms",
    "kafka.fetch.max.bytes": "no consumer to tune",
    "kafka.metrics.num.samples": "no consumer to tune",
    "kafka.sasl.kerberos.kinit.cmd": "Kerberos",
    "kafka.sasl.login.class": "kafka.sasl.oauthbearer.token.endpoint.url",
    "kafka.sasl.oauthbearer.expected.audience": "only brokers validate tokens",
    "kafka.sasl.oauthbearer.assertion.file": "use kafka.sasl.oauthbearer.client.id",
    "kafka.sasl.oauthbearer.client.credentials.client.id": "use kafka.sasl.oauthbearer.client.id",
    "kafka.share.acquire.mode": "uses no consumer group",
}
SUPPORTED = {
    "startingOffsets": "earliest",
    "endingOffsets": "latest",
    "startingTimestamp": " 1 ",
    "endingTimestamp": "1",
    "startingOffsetsByTimestamp": '{"t": {"0": 1}}',
    "endingOffsetsByTimestamp": '{"t": {"0": 1}}',
    "startingOffsetsByTimestampStrategy": "latest",
    "failOnDataLoss": "false",
    "maxOffsetsPerTrigger": "5",
    "minPartitions": "5",
    "maxRecordsPerPartition": "5",
    "includeHeaders": "true",
    "kafka.isolation.level": "read_uncommitted",
    "kafka.security.protocol": "PLAINTEXT",
}


@pytest.mark.parametrize("name", REJECTED)
def test_inapplicable_option_is_rejected_with_its_replacement(name: str) -> None:
    with pytest.raises(BadOption, match=f"the option {name.lower()} does not apply.*{REJECTED[name]}") as raised:
        source_options(NEEDED | {name: "s3cret"})

    assert "s3cret" not in str(raised.value)


@pytest.mark.parametrize("name", SUPPORTED)
def test_an_option_that_applies_is_accepted(name: str) -> None:
    source_options(NEEDED | {name: SUPPORTED[name]})


@pytest.mark.parametrize(
    ("given", "output"),
    [
        ({"assign": '{"t": [0]}'}, "is required .found subscribe and assign"),
        ({"subscribe": "", "assign": '{"t": 0}'}, "assign: expected"),
        ({"subscribe": "", "assign": '{"t": [-1]}'}, "assign: expected"),
        ({"subscribe": "", "subscribePattern": "t(?=x)"}, "subscribePattern: .*look-around"),
        ({"startingOffsets": "latest"}, "startingOffsets: latest selects no records in a batch query"),
        ({"endingOffsets": "earliest"}, "endingOffsets: earliest selects no records in a batch query"),
        ({"startingOffsets": '{"t": {"0": -1}}'}, "startingOffsets: -1 for t-0 selects no records"),
        ({"startingOffsets": '{"t": {"0": -5}}'}, "expected an offset, -1 .latest. or -2 .earliest. for t-0, found -5"),
        ({"startingOffsets": '{"t": {"0": 1.5}}'}, "expected a 64-bit integer for t-0, found 1.5"),
        ({"startingOffsets": '{"t": {"0": true}}'}, "expected a 64-bit integer for t-0"),
        ({"startingOffsetsByTimestamp": "noon"}, "startingOffsetsByTimestamp: expected .* with times in ms"),
        ({"startingOffsetsByTimestamp": '{"t": {"0": -2}}'}, "expected a time in ms of at least 0"),
        ({"startingOffsetsByTimestampStrategy": "first"}, "expected error or latest"),
        ({"startingTimestamp": "-1"}, "startingTimestamp: expected a time in ms"),
        (
            {"startingTimestamp": "5", "endingTimestamp": "3"},
            "startingTimestamp is 5, after endingTimestamp, which is 3",
        ),
        (
            {"startingOffsetsByTimestamp": '{"t": {"0": 5}}', "endingOffsetsByTimestamp": '{"t": {"0": 3}}'},
            "startingOffsetsByTimestamp is 5 for t-0, after endingOffsetsByTimestamp, which is 3",
        ),
        ({"startingTimestamp": "5", "endingOffsetsByTimestamp": '{"t": {"0": 3}}'}, "startingTimestamp is 5 for t-0"),
        ({"includeHeaders": "true", "columns": "key"}, "includeHeaders=true contradicts columns"),
        ({"isolation.level": "read_committed", "kafka.isolation.level": "read_uncommitted"}, "differ"),
        ({"trigger": "hourly"}, "trigger: expected processingTime, availableNow or once"),
        ({"maxRecordsPerPartition": "0"}, "maxRecordsPerPartition: expected a number above 0"),
        ({"kafka.bootstrap.servers": "a:99999"}, "expected a port of 1 to 65535, found 'a:99999'"),
        ({"kafka.bootstrap.servers": "a:9092,b:0"}, "expected a port of 1 to 65535, found 'b:0'"),
        ({"kafka.bootstrap.servers": ":9092"}, "expected host:port"),
        ({"kafka.bootstrap.servers": "::1:9092"}, "brackets around IPv6"),
        ({"kafka.bootstrap.servers": "SSL://a:9092"}, "omit SSL://"),
        ({"kafka.bootstrap.servers": "u:s3cret@a:9092"}, "without a user or password"),
        ({"kafka.bootstrap.servers": f"a:{'9' * 5000}"}, "expected a port of 1 to 65535"),
    ],
)
def test_invalid_values_of_source_options_are_reported(given: dict[str, str], output: str) -> None:
    with pytest.raises(BadOption, match=output) as raised:
        source_options(NEEDED | given)

    assert "s3cret" not in str(raised.value)
    assert len(str(raised.value)) < 500


@pytest.mark.parametrize("name", ["endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"])
def test_rejects_ending_offsets_of_a_stream(name: str) -> None:
    with pytest.raises(BadOption, match=f"{name} applies to batch queries only"):
        TopicSource(NEEDED | {name: SUPPORTED[name]}).streamReader(StructType())


@pytest.mark.parametrize(("name", "value"), [("maxOffsetsPerTrigger", "5"), ("trigger", "once")])
def test_warns_about_streaming_option_in_batch_query(name: str, value: str) -> None:
    with pytest.warns(UserWarning, match=f"the option {name} applies only to streams"):
        TopicSource(NEEDED | {name: value}).reader(StructType())


def test_rejects_an_unknown_verification_of_hostnames() -> None:
    with pytest.raises(BadSetting, match=r"ssl\.endpoint\.identification\.algorithm: expected https or none, found ''"):
        source_options(NEEDED | {"kafka.ssl.endpoint.identification.algorithm": ""})


def test_an_unknown_client_setting_is_not_echoed() -> None:
    with pytest.raises(BadSetting, match=r"unknown client setting 'sasl\.passwrd'") as raised:
        source_options(NEEDED | {"kafka.sasl.passwrd": "s3cret"})

    assert "s3cret" not in str(raised.value)


PLACE = ("topic", "partition", "offset")


@needs_sparks_own
def test_every_option_of_sparks_own_source_is_accepted_or_rejected_with_advice(spark: SparkSession) -> None:
    jvm: Any = spark.sparkContext._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    names = set()
    for field in loader.loadClass("org.apache.spark.sql.kafka010.KafkaSourceProvider$").getDeclaredFields():
        if field.getType().getName() == "java.lang.String":
            field.setAccessible(True)
            names.add(field.get(None))
    options = {name for name in names if re.fullmatch("[a-z.]+", name)}

    assert "maxtriggerdelay" in options
    assert (
        options - {name.lower() for name in ("subscribe", "subscribePattern", "assign", *SUPPORTED, *REJECTED)} == set()
    )


@needs_sparks_own
def test_every_setting_of_kafkas_consumer_is_accepted_or_rejected_with_advice(spark: SparkSession) -> None:
    jvm: Any = spark.sparkContext._jvm
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    config = loader.loadClass("org.apache.kafka.clients.consumer.ConsumerConfig")
    none, nothing = (spark.sparkContext._gateway.new_array(kind, 0) for kind in (jvm.Class, jvm.Object))
    names = config.getMethod("configNames", none).invoke(None, nothing)
    unknown = []
    for name in names:
        try:
            source_options(NEEDED | {f"kafka.{name}": ""})
        except BadSetting as error:
            unknown += [name] if "unknown client setting" in str(error) else []
        except BadOption:
            pass

    assert len(names) > 90
    assert unknown == []


@pytest.fixture(scope="module")
def middle_time_ms() -> int:
    return int(time.time() * 1000)


@pytest.fixture(scope="module")
def topic(kafka_bootstrap: str, middle_time_ms: int) -> str:
    """Return a topic of 300 records in three partitions, one record per second. The middle record has the time
    `middle`."""
    found = create_topic(kafka_bootstrap, UNVALIDATED)
    producer = Producer({"bootstrap.servers": kafka_bootstrap})
    for i in range(300):
        producer.produce(found, str(i), partition=i % 3, timestamp=middle_time_ms - 150_000 + i * 1000)
    assert producer.flush(30) == 0
    return found


def read(spark: SparkSession, source: str, bootstrap: str, options: dict[str, Any]) -> Any:
    """Return the offsets of all rows, or the error."""
    common = {"kafka.bootstrap.servers": bootstrap, "kafka.isolation.level": "read_committed"}
    if source == "kafka":
        common["kafkaConsumer.pollTimeoutMs"] = "2000"  # Spark's source waits two minutes for offsets that do not exist
    try:
        return rows_of(spark.read.format(source).options(**common, **options).load().select(*PLACE))
    except Exception as error:
        return error


@needs_sparks_own
@pytest.mark.parametrize(
    ("options", "rows"),
    [
        ({"subscribe": None}, 300),
        ({"subscribePattern": "PREFIX.*"}, 300),
        ({"assign": {None: [0, 2]}}, 200),
        ({"subscribe": None, "startingOffsetsByTimestamp": {None: {"0": 0, "1": 0, "2": -1}}}, 200),
        ({"subscribe": None, "endingOffsetsByTimestamp": {None: {"0": -60_000, "1": 0, "2": 0}}}, 130),
        ({"subscribe": None, "startingTimestamp": 3_600_000}, None),
        ({"subscribe": None, "startingTimestamp": 3_600_000, "startingOffsetsByTimestampStrategy": "latest"}, 0),
        ({"subscribe": None, "startingOffsets": {None: {"0": 500, "1": 0, "2": 0}}}, None),
        ({"subscribe": None, "startingOffsets": {None: {"0": 100, "1": 0, "2": 0}}}, 200),
        ({"subscribe": None, "endingOffsets": {None: {"0": 500, "1": -1, "2": -1}}}, None),
        ({"subscribe": None, "endingOffsets": {None: {"0": 500, "1": -1, "2": -1}}, "failOnDataLoss": "false"}, 300),
        (
            {
                "subscribe": None,
                "startingOffsets": {None: {"0": 50, "1": 0, "2": 0}},
                "endingOffsets": {None: {"0": 20, "1": -1, "2": -1}},
            },
            None,
        ),
        ({"subscribe": None, "startingOffsets": "latest"}, None),
        ({"subscribe": None, "maxRecordsPerPartition": "7"}, 300),
    ],
)
def test_rows_and_errors_equal_those_of_sparks_own_source(
    options: dict[str, Any],
    rows: int | None,
    spark: SparkSession,
    kafka_bootstrap: str,
    topic: str,
    middle_time_ms: int,
) -> None:
    """In the options None means the topic; times are relative to `middle`, and -1 means 150 s before it."""
    given = dict(options)
    for name, value in options.items():
        if value is None:
            given[name] = topic
        elif isinstance(value, dict):
            its = value[None]
            if "ByTimestamp" in name:
                its = {p: middle_time_ms - 150_000 if time == -1 else middle_time_ms + time for p, time in its.items()}
            given[name] = json.dumps({topic: its})
        elif name == "startingTimestamp":
            given[name] = str(middle_time_ms + value)
        elif name == "subscribePattern":
            given[name] = value.replace("PREFIX", topic[:-2])

    ours, theirs = (read(spark, source, kafka_bootstrap, given) for source in ("sluicegate", "kafka"))

    if rows is None:
        assert isinstance(theirs, Exception)
        assert isinstance(ours, PySparkException), ours
        assert "sluicegate.pipeline" in str(ours)
    else:
        assert ours == theirs
        assert len(ours) == rows


@pytest.mark.parametrize(
    ("options", "output"),
    [
        ({"subscribePattern": "no-such-topic.*"}, "this login may see no topic that matches 'no-such-topic"),
        ({"assign": '{"TOPIC": [0, 7]}'}, "assign: there is no partition TOPIC-7"),
        ({"assign": '{"no-such-topic": [0]}'}, "there is no topic 'no-such-topic'"),
    ],
)
def test_rejects_subscription_that_matches_no_topic(
    options: dict[str, str], output: str, spark: SparkSession, kafka_bootstrap: str, topic: str
) -> None:
    """Spark's own source returns no rows."""
    given = {name: value.replace("TOPIC", topic) for name, value in options.items()}

    with pytest.raises(PySparkException, match=output.replace("TOPIC", topic)):
        spark.read.format("sluicegate").option("kafka.bootstrap.servers", kafka_bootstrap).options(
            **given
        ).load().count()


@needs_sparks_own
def test_decodes_header_names_that_are_not_utf_8_as_java_does(spark: SparkSession, kafka_bootstrap: str) -> None:
    """Java's decoder and Python's replace invalid bytes differently."""
    topic = create_topic(kafka_bootstrap, UNVALIDATED, 1)
    parts = (
        b"\x80",
        b"\xc0\x80",
        b"\xc2",
        b"\xe0\x80\x80",
        b"\xe2\x82",
        b"\xed\xa0\x80",
        b"\xed\xbf",
        b"\xed",
        b"\xf0\x9f",
    )
    more = (
        b"\xf0\x80\x80\x80",
        b"\xf4\x90\x80\x80",
        b"\xf5\x80\x80\x80",
        b"\xf8\x88\x80\x80\x80",
        b"\xff",
        b"\xef\xbf\xbe",
    )
    names = [before + part + after for part in (*parts, *more) for before in (b"", b"a") for after in (b"", b"z", part)]
    records = [Rec(1000, b"k", b"v", ((name, b"x"), (b"ok", None))) for name in names]
    with RawClient(kafka_bootstrap.split(",", maxsplit=1)[0]) as client:
        response: Any = client.produce(9, [topic_data(topic, (0, batch(records)))])
    assert response["responses"][0]["partition_responses"][0]["error_code"] == 0
    options = {"kafka.bootstrap.servers": kafka_bootstrap, "subscribe": topic, "includeHeaders": "true"}

    ours, theirs = (
        [row.headers for row in spark.read.format(source).options(**options).load().orderBy("offset").collect()]
        for source in ("sluicegate", "kafka")
    )

    assert len(ours) == len(names)
    assert ours == theirs
