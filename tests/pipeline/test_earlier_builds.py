"""Jobs read folders with results of an earlier build, which wrote `gone` and `left` for `missing` and `remaining`."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from sluicegate.pipeline.jobs.extract import progress as extracting
from sluicegate.pipeline.jobs.replay.progress import Run
from sluicegate.pipeline.jobs.watch import progress as watching
from sluicegate.pipeline.kafka.cluster import OffsetRange, TopicPartition
from sluicegate.pipeline.runs.errors import EarlierBuild
from sluicegate.pipeline.runs.results import Results

PLACE = TopicPartition("t", 0)


def error_about_earlier_build(path: str) -> str:
    return rf"{path} was written by an earlier build of sluicegate: run the job again with a new --out$"


def write_file(folder: Path, name: str, content: object) -> str:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(content))
    return str(file)


def test_an_extraction_continues_from_the_progress_of_an_earlier_build(spark: SparkSession, tmp_path: Path) -> None:
    content = {"partitions": [["t", 0, 5, 3, 4, 1, 0]], "ids": {"t": "id"}, "gone": []}
    file = write_file(tmp_path, "progress/0.json", content)

    with pytest.raises(EarlierBuild, match=error_about_earlier_build(file)):
        extracting.progress_in(Results(spark, str(tmp_path)))


def test_a_watch_continues_from_the_progress_of_an_earlier_build(spark: SparkSession, tmp_path: Path) -> None:
    topics = {"t": {"records": 5, "damage": {}, "violations": {}, "gone": 0, "unreadable": 0}}
    content = {"places": [["t", 0, 5, 1]], "producers": [], "owed": [], "recent": [], "topics": topics, "ids": {}}
    file = write_file(tmp_path, "progress/0.json", content)

    with pytest.raises(EarlierBuild, match=error_about_earlier_build(file)):
        watching.progress_in(Results(spark, str(tmp_path)))


def test_a_replay_continues_from_the_list_of_an_earlier_build(spark: SparkSession, tmp_path: Path) -> None:
    begun = write_file(tmp_path, "runs/0/begun.json", [["group", "t", 0, 2]])
    (tmp_path / "runs" / "0" / "left").mkdir()
    results = Results(spark, str(tmp_path))

    with pytest.raises(EarlierBuild, match=error_about_earlier_build(str(Path(begun).parent))):
        Run(results, 1).remaining_before([OffsetRange(PLACE, 5, 9)], {"t": "group"})
