"""Times in a contract are parsed correctly. For formats, the oracle is Java's DateTimeFormatter, to which the standard
refers."""

import json
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from random import Random

import jsonschema_rs
import pytest

from tests.config.contracts.written import contract_with_fields, load_texts
from tests.oracle.java_program import java_command, run_java
from tests.oracle.kafka_java import KAFKA_NEW, ROOT, kafka_folder

FORMATS = [
    "yyyy-MM-dd",
    "dd.MM.uuuu",
    "yyyy-MM-dd'T'HH:mm:ss",
    "yyyy-MM-dd HH:mm:ss[.SSS]",
    "HH:mm[:ss[.SSS]]",
    "HH:mm[:ss][.SSSSSS]",
    "yyyy-MM-dd['T'HH:mm",
    "yyyy-MM-dd[HHmm]",
    "HH 'o''clock'",
    "[HH:mm]",
]
INVALID = ["HH]", "{yyyy}", "yyyy#"]
TEXTS = [
    "2026-11-30",
    "2026-02-30",
    "2026-13-01",
    "2026-11-32",
    "30.11.2026",
    "2026-11-30T09:05:00",
    "2026-11-30T09:05",
    "2026-11-30 09:05:00",
    "2026-11-30 09:05:00.250",
    "2026-11-30 09:05:00.25",
    "2026-11-30 24:05:00",
    "09:05",
    "09:60",
    "09:05:07",
    "09:05:07.250",
    "09:05:07.250000",
    "09:05.250000",
    "9:05",
    "2026-11-300905",
    "09 o'clock",
    "",
]


def rule_accepts_text(folder: Path, field: str) -> Callable[[str], bool]:
    """Return whether the rule of a contract accepts a text for its property `t`."""
    folder.mkdir(exist_ok=True)
    (rule,) = (
        load_texts(folder, "contracts: c.odcs.yaml\n", c_odcs=contract_with_fields(f"[{field}]")).config.topics[0].rules
        or ()
    )
    assert rule.value is not None and rule.value.schema_ is not None and rule.value.schema_.text is not None
    schema = jsonschema_rs.Draft202012Validator(json.loads(rule.value.schema_.text), validate_formats=True)
    return lambda text: bool(schema.is_valid({"t": text}))


def time_property(kind: str, **options: object) -> str:
    return json.dumps({"name": "t", "logicalType": kind, "logicalTypeOptions": options})


def edit_at_random(chance: Random, text: str) -> str:
    at = chance.randrange(len(text) + 1)
    return text[:at] + chance.choice(["", "0", "9", ":", "."]) + text[at + chance.randrange(2) :]


def test_time_formats_accept_the_same_texts_as_java(tmp_path: Path) -> None:
    chance = Random(64)
    texts = [*dict.fromkeys([*TEXTS, *(edit_at_random(chance, text) for text in TEXTS for _ in range(5))])]
    patterns = [*FORMATS, *INVALID]
    program = java_command(kafka_folder(KAFKA_NEW), str(ROOT / "tests/oracle/TimeFormats.java"))
    lines = "".join(f"{pattern}\t{text}\n" for pattern in patterns for text in texts)
    of_java = iter(run_java(program, lines).splitlines())
    by_pattern = {pattern: dict(zip(texts, islice(of_java, len(texts)), strict=True)) for pattern in patterns}

    for pattern in FORMATS:
        is_good = rule_accepts_text(tmp_path, time_property("timestamp", format=pattern))
        expected = {text: said == "true" for text, said in by_pattern[pattern].items()}
        assert {text: is_good(text) for text in texts} == expected, pattern
        assert set(expected.values()) == {True, False}
    for pattern in INVALID:
        assert set(by_pattern[pattern].values()) == {"invalid"}


@pytest.mark.parametrize("pattern", INVALID)
def test_reports_unsupported_time_format_as_unchecked(pattern: str, tmp_path: Path) -> None:
    contract = contract_with_fields(f"[{time_property('timestamp', format=pattern)}]")

    (statement,) = load_texts(tmp_path, "contracts: c.odcs.yaml\n", c_odcs=contract).source.contracts["t"].unchecked

    assert str(statement) == f"format {pattern} of t: the format has parts that are not supported"


_ZONED, _LOCAL = "2026-11-30T09:05:00.25+01:00", "2026-11-30T09:05:00"


@pytest.mark.parametrize(
    ("kind", "options", "good", "bad"),
    [
        ("timestamp", {}, [_ZONED, "2026-11-30T09:05:00Z"], [_LOCAL]),
        ("timestamp", {"timezone": True}, [_ZONED], [_LOCAL]),
        ("timestamp", {"timezone": False}, [_LOCAL, _LOCAL + ".123"], [_ZONED, _LOCAL + "Z", "2026-13-30T09:05:00"]),
        ("timestamp", {"defaultTimezone": "Europe/Berlin"}, [_LOCAL, _ZONED], ["2026-11-30"]),
        ("timestamp", {"timezone": True, "defaultTimezone": "Etc/UTC"}, [_ZONED], [_LOCAL]),
        ("time", {}, ["09:05:00", "09:05:00.123456"], ["09:05:00Z", "25:00:00", "09:05"]),
        ("time", {"timezone": True}, ["09:05:00Z", "09:05:00.5+01:00"], ["09:05:00"]),
        ("time", {"timezone": False}, ["09:05:00"], ["09:05:00Z"]),
        ("time", {"defaultTimezone": "Etc/UTC"}, ["09:05:00", "09:05:00Z"], ["09"]),
    ],
)
def test_timestamp_offset_is_required_or_rejected_according_to_the_contract(
    kind: str, options: dict[str, object], good: list[str], bad: list[str], tmp_path: Path
) -> None:
    field = time_property(kind, **options)

    assert [*filter(rule_accepts_text(tmp_path, field), (*good, *bad))] == good


def test_reports_timezone_option_that_contradicts_the_time_format(tmp_path: Path) -> None:
    contract = contract_with_fields(f"[{time_property('timestamp', format='yyyy-MM-dd HH:mm:ssX', timezone=False)}]")

    (statement,) = load_texts(tmp_path, "contracts: c.odcs.yaml\n", c_odcs=contract).source.contracts["t"].unchecked

    assert str(statement) == "timezone of t: format yyyy-MM-dd HH:mm:ssX decides"


@pytest.mark.parametrize(
    ("kind", "physical", "options", "named"),
    [
        (
            "timestamp",
            "long",
            {"format": "yyyy-MM-dd", "timezone": False, "defaultTimezone": "Etc/UTC"},
            [f"{key} of t: times are whole numbers by physicalType long" for key in ("format", "timezone")]
            + ["defaultTimezone of t: times are whole numbers by physicalType long"],
        ),
        ("timestamp", "long", {}, []),
        ("date", "", {"format": "yyyy-MM-dd"}, []),
    ],
)
def test_reports_unchecked_time_options(
    kind: str, physical: str, options: dict[str, object], named: list[str], tmp_path: Path
) -> None:
    field = json.dumps({"name": "t", "logicalType": kind, "physicalType": physical, "logicalTypeOptions": options})

    loaded = load_texts(tmp_path, "contracts: c.odcs.yaml\n", c_odcs=contract_with_fields(f"[{field}]"))

    assert [str(each) for each in loaded.source.contracts["t"].unchecked] == named
