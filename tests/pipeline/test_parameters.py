"""Every parameter of every public function accepts exactly its declared values. These tests need no Spark session."""

import inspect
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest

from sluicegate import pipeline
from sluicegate.pipeline.jobs import extract
from sluicegate.pipeline.jobs.extract.extractors import TooLate
from sluicegate.pipeline.jobs.parameters import check_arguments, checked_value
from sluicegate.pipeline.jobs.repair.settings import Retention
from sluicegate.pipeline.jobs.replay.writing import Headers
from sluicegate.pipeline.runs.argument_checks import BadParameter
from sluicegate.pipeline.runs.tables import TableFormat

FUNCTIONS = {name: each for name in pipeline.__all__ if inspect.isfunction(each := getattr(pipeline, name))}
FUNCTIONS["extracted"] = extract.extracted
MOMENT = datetime(2026, 11, 30, tzinfo=UTC)
NO_COLUMN = [None, "", "  ", 7, True, b"timestamp", ["timestamp"], MOMENT]
NO_TEXT = [None, "", "  ", b"text", 7, ["text"]]
NO_PATH = [None, "", b"out", 7, ["out"], True]
NO_NUMBER = [-1, 1.5, True, "3600000", [1], MOMENT, 2**63]
NO_WORD = [None, "no such word", "", 1, True, ["keep"], b"keep"]
WRONG: dict[str, list[Any]] = {
    "spark": [None, "local[*]", 7, [], {}],
    "bootstrap": [
        None,
        "",
        "localhost",
        "localhost:kafka",
        "localhost:99999",
        ":9092",
        9092,
        ["localhost:9092"],
        b"localhost:9092",
    ],
    "topics": [None, "", [], ["orders", ""], ["orders", 7], {"orders"}, b"orders", 7, "a,b"],
    "source": NO_TEXT,
    "target": NO_TEXT,
    "out": NO_PATH,
    "settings": ["a=b", ["a"], 7, {"a": 1}, {1: "a"}, {"a": None}],
    "policies": NO_PATH[1:],
    "after_max_ms": [None, *NO_NUMBER],
    "before_max_ms": NO_NUMBER,
    "epoch_ms": [-1, 0, 1.5, True, MOMENT, date(2016, 1, 1), "ten years", "", 2**62, [2016]],
    "as_of_ms": [-1, 0, 1_764_500_000, 1.5, True, MOMENT, "yesterday", "", [1], 10**18],
    "assume_ms": [0, *NO_NUMBER],
    "tables": NO_PATH[1:],
    "tables_format": NO_WORD,
    "events": NO_PATH[1:],
    "samples": [-1, 1001, 1.5, True, "many", "", "-1", [5]],
    "to": NO_TEXT,
    "keep": [None, "nanos", ["zero", "nanos"], 7, {"zero": 1}, [None], b"zero"],
    "rewrite": [None, "zero", ["future", "zero"], 7, {"future": 1}, True],
    "retention": NO_WORD,
    "skip_unreadable": [None, "no", "false", 0, 1, []],
    "skip_unwritable": [None, "no", "false", 0, 1, []],
    "fix": NO_WORD[1:],
    "by": NO_TEXT[1:],
    "headers": NO_WORD,
    "findings": NO_PATH[1:],
    "plan": NO_PATH[1:],
    "quiet_hours": [None, 0, *NO_NUMBER],
    "offsets_a_batch": [None, 0, *NO_NUMBER],
    "webhook": NO_TEXT[1:],
    "frame": [None, "frame", 7, [], {}],
    "extractor": ["previous", 7, [], object(), type("Own", (), {"extract": lambda *_: 0})],
    "too_late": [*NO_WORD[:-2], ["skip"], b"skip"],
    "timestamp": NO_COLUMN,
    "appended": NO_COLUMN,
}
"""Values that parameters with this name must reject. Only a watch accepts None for `policies`."""


class StubSession:
    """Stands for a session; none of its methods is called."""

    def createDataFrame(self) -> None:  # noqa: N802
        raise AssertionError("a job began")


class StubFrame:
    """Stands for a DataFrame."""

    def withColumn(self) -> None:  # noqa: N802
        raise AssertionError("a job began")


RIGHT: dict[str, Any] = {
    **{
        "spark": StubSession(),
        "bootstrap": "127.0.0.1:1",
        "topics": "orders",
        "out": "out",
        "policies": "sluicegate.yaml",
    },
    **{"source": "orders", "target": "orders-clean", "frame": StubFrame()},
    **{"timestamp": "timestamp", "appended": "appended", "before_max_ms": 0, "after_max_ms": 0},
}


def parameters_of_functions() -> Iterator[tuple[str, str]]:
    for name, function in FUNCTIONS.items():
        yield from ((name, each) for each in inspect.signature(function).parameters)


def valid_arguments(function: str, name: str, value: Any) -> dict[str, Any]:
    its = inspect.signature(FUNCTIONS[function]).parameters.values()
    return {each.name: RIGHT[each.name] for each in its if each.default is inspect.Parameter.empty} | {name: value}


def test_invalid_value_samples_cover_every_parameter_of_every_function() -> None:
    assert len(FUNCTIONS) == 14
    assert {name for _, name in parameters_of_functions()} == WRONG.keys()
    assert [name for name, values in WRONG.items() if len(values) < 5] == []


@pytest.mark.parametrize(("function", "name"), [*parameters_of_functions()])
def test_rejects_a_wrong_value_with_one_error_that_names_the_parameter(function: str, name: str) -> None:
    for value in WRONG[name]:
        with pytest.raises(BadParameter, match=rf"^{name}: expected .+, found ") as error:
            FUNCTIONS[function](**valid_arguments(function, name, value))
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("job", ["audit", "plan_replay", "replay"])
def test_rejects_none_for_the_required_policies(job: str) -> None:
    with pytest.raises(
        BadParameter, match=r"^policies: expected the path of the proxy's configuration file, found None"
    ):
        FUNCTIONS[job](**valid_arguments(job, "policies", None))


@pytest.mark.parametrize(
    ("name", "value", "found"),
    [
        ("retention", "as-source", Retention.AS_SOURCE),
        ("retention", Retention.KEEP, Retention.KEEP),
        ("headers", "all", Headers.ALL),
        ("tables_format", "delta", TableFormat.DELTA),
        ("too_late", "skip", TooLate.SKIP),
        ("keep", "zero", ("zero",)),
        ("keep", {"zero"}, ("zero",)),
        ("rewrite", ["future", "implausible"], ("future", "implausible")),
        ("samples", "all", None),
        ("samples", None, None),
        ("samples", "7", 7),
        ("as_of_ms", "append", None),
        ("as_of_ms", "2026-01-01", 1_767_225_600_000),
        ("as_of_ms", 1_767_225_600_000, 1_767_225_600_000),
        ("epoch_ms", "2016", 1_451_606_400_000),
        ("epoch_ms", "10y", None),
        ("topics", ["a", "b", "a"], ("a", "b")),
        ("out", Path("out"), "out"),
    ],
)
def test_parameters_accept_the_values_that_the_command_accepts(name: str, value: Any, found: Any) -> None:
    assert checked_value(name, value, is_optional=False) == found


@pytest.mark.parametrize("job", ["plan_repair", "repair", "plan_replay", "replay"])
def test_functions_that_write_reject_topic_patterns(job: str, tmp_path: Path) -> None:
    policies = tmp_path / "sluicegate.yaml"
    policies.write_text('upstream: {bootstrap: ["127.0.0.1:1"]}\nlisten: {bootstrap: "127.0.0.1:2"}\n')
    given = valid_arguments(job, "topics", "orders-*")
    given |= {"policies": policies} if "policies" in given else {}

    with pytest.raises(pipeline.PipelineError, match="'orders-\\*' is a pattern, but this job takes names"):
        FUNCTIONS[job](**given)


def test_secrets_are_not_in_an_error() -> None:
    with pytest.raises(BadParameter) as error:
        checked_value("settings", ["sasl.password=secret"], is_optional=True)

    assert "secret" not in str(error.value)


def test_a_parameter_that_is_not_declared_is_an_error_when_the_function_is_defined() -> None:
    with pytest.raises(TypeError, match="job: declare its parameters \\['new'\\]"):

        @check_arguments
        def unused_job(spark: Any, new: int) -> None: ...
