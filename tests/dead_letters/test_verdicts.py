"""Letters that are validated together get the same verdicts as letters that are validated separately."""

import json
from pathlib import Path

import pytest

from sluicegate.dead_letters import Letter, LetterValidator
from sluicegate.proxy.reload.letter_policies import read_policies
from sluicegate.validation.policy import TimeFix
from tests.dead_letters.desk import configuration, from_topic
from tests.dead_letters.letters import CONNECT, TIME, letter

HOUR = {"message.timestamp.before.max.ms": "1h", "message.timestamp.after.max.ms": "1h"}
NOW = TIME + 1
VALUES = (b'{"n": 1}', b"no JSON", None, b'{"card": "4111"}')
TIMES = (TIME, TIME - 7_200_000, TIME * 1_000_000)


def validator(folder: Path) -> LetterValidator:
    topics = [
        {"match": "strict", **HOUR, "rules": [{"name": "json", "value": {"json": {}}}]},
        {"match": "observed", "mode": "observe", **HOUR},
        {"match": "fixed", **HOUR, "fix": {"timestamp": "unit"}},
        {"match": "marked", "mode": "mark", "rules": [{"name": "json", "value": {"json": {}}}]},
        {"match": "masked", "sensitive": [{"name": "card", "fields": ["card"], "action": "mask"}]},
    ]
    return read_policies(Path(configuration(folder, "127.0.0.1:1", topics=topics)), ()).validator(now_ms=NOW)


def letters_of(topic: str, count: int) -> list[Letter]:
    """Return letters with all pairs of a value and a time in turn."""
    headers = from_topic(CONNECT, topic)
    pairs = [(value, time) for value in VALUES for time in TIMES]
    return [letter(headers, *pairs[i % len(pairs)][:1], i, pairs[i % len(pairs)][1]) for i in range(count)]


@pytest.mark.parametrize("fix", [None, TimeFix.NOW])
@pytest.mark.parametrize("topic", ["strict", "observed", "fixed", "marked", "masked", "other"])
def test_bad_letters_get_the_same_verdicts_among_valid_letters(topic: str, fix: TimeFix | None, tmp_path: Path) -> None:
    alone = validator(tmp_path)
    valid = [letter(from_topic(CONNECT, topic), json.dumps({"n": i}).encode(), i, TIME) for i in range(70)]
    letters = [*valid, *letters_of(topic, 30), *letters_of("other", 3)]

    found = alone.verdicts(letters, fix)

    assert found == [alone.verdict(each, fix) for each in letters]
    assert sum(each.is_valid for each in found[:70]) == 70


def test_letters_are_not_rejected_for_the_size_of_their_batch(tmp_path: Path) -> None:
    file = Path(configuration(tmp_path, "127.0.0.1:1", topics=[{"match": "small", "max.message.bytes": 2000}]))
    letters = [letter(from_topic(CONNECT, "small"), bytes(1000), i, TIME) for i in range(5)]
    letters.append(letter(from_topic(CONNECT, "small"), bytes(3000), 5, TIME))

    found = read_policies(file, ()).validator(now_ms=NOW).verdicts(letters)

    assert [each.is_valid for each in found] == [True] * 5 + [False]
