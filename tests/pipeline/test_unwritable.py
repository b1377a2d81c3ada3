"""Repairs report records with header names that client libraries cannot write."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from sluicegate.pipeline import api
from sluicegate.pipeline.writing.record_writer import CannotWriteTopic
from tests.integration.topics import create_topic
from tests.pipeline.polluted import UNLIMITED
from tests.pipeline.repairs import now_ms
from tests.pipeline.replays import read_back
from tests.wire.batches import LZ4, Rec, batch
from tests.wire.raw_client import RawClient, topic_data

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.long,
]
UNWRITABLE = [b"\xff\xfe", b"a\0b", b"\0", b"\xed\xa0\x80"]
WRITABLE: list[tuple[bytes, bytes | None]] = [(b"", b""), ("é".encode(), b"\xff"), (b"plain", None), (b"plain", b"1")]


def test_repair_reports_unwritable_records_and_skips_them_on_request(
    spark: SparkSession, kafka_bootstrap: str, tmp_path: Path
) -> None:
    now = now_ms() - 60_000
    topic = create_topic(kafka_bootstrap, UNLIMITED, 2)
    bad = [Rec(0 if i else now, b"bad", headers=[(b"h", b"1"), (name, b"1")]) for i, name in enumerate(UNWRITABLE)]
    kinds = [
        Rec(now + i, key, value, WRITABLE) for i, key in enumerate((None, b"", b"k")) for value in (None, b"", b"v")
    ]
    with RawClient(kafka_bootstrap) as client:
        for part in (kinds, bad, [Rec(now * 1_000_000, b"late", headers=WRITABLE)]):
            client.produce(9, [topic_data(topic, (0, batch(part, LZ4)))])
        client.produce(9, [topic_data(topic, (1, batch([Rec(now), Rec(0)])))])
    given: Any = (spark, kafka_bootstrap, topic)
    sentence = f"{topic}-0: 4 records, the first at offset 9, have a header name that client libraries cannot write"

    dry = api.plan_repair(*given, tmp_path / "dry")
    with pytest.raises(CannotWriteTopic, match=sentence):
        api.repair(*given, tmp_path / "dry")
    done = api.repair(*given, tmp_path / "repair", skip_unwritable=True)

    (obstacle,) = dry.obstacles
    assert obstacle.startswith(sentence)
    assert obstacle.endswith("--skip-unwritable leaves these records out")
    assert [text for text in done.warnings if text.startswith(sentence)]
    assert done.summary["written_by_this_run"] == 12
    found = read_back(kafka_bootstrap, f"{topic}-clean")
    copies = [(each.timestamp, each.key, each.value, each.headers) for each in found[:9]]
    headers = [(name.decode(), value) for name, value in WRITABLE]
    assert copies == [(each.timestamp, each.key, each.value, headers) for each in kinds]
    assert [(each.partition, each.key) for each in found[9:]] == [(0, b"late"), (1, b"k"), (1, b"k")]
    asked: Any = (spark, kafka_bootstrap, topic, f"{topic}-clean")
    assert api.verify(*asked, tmp_path / "verify", plan=tmp_path / "repair").is_same
    assert api.verify(*asked, tmp_path / "whole").summary["differences"]["missing"] == 4
