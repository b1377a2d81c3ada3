"""The counts of a JSON text agree with the values that Python's own reader returns."""

import json
from array import array
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from sluicegate.validation.rules.json.count import DEEPEST, JsonCount, weighted_sum
from tests.validation.rules.json.random_json import RandomJson

ITEM, BYTE, UNIT = range(3)


def count_items(text: bytes, depth: int, what: int) -> float:
    """Return the number of items of one kind, which alone has a weight."""
    weights = array("d", bytes(8 * 3 * (DEEPEST + 1)))
    weights[3 * depth + what] = 1.0
    return weighted_sum(text, weights, 0.0, 0.0)


def items_of_json(value: Any, depth: int = 0) -> Iterator[tuple[str, int, int]]:
    """Yield each item, string, number, list, object and key with its depth and size."""
    yield "items", depth, 1
    if isinstance(value, str):
        yield "bytes", depth, len(json.dumps(value, ensure_ascii=False)) - 2
    elif isinstance(value, dict):
        yield "containers", 0, 1
        yield "keys", 0, len(value)
        for key, below in value.items():
            yield "bytes", depth + 1, len(json.dumps(key, ensure_ascii=False)) - 2
            yield from items_of_json(below, depth + 1)
    elif isinstance(value, list):
        yield "containers", 0, 1
        for below in value:
            yield from items_of_json(below, depth + 1)
    elif not isinstance(value, bool | None):
        text = json.dumps(value)
        yield "units", depth, 1 + 4 * ("." in text) + 8 * ("e" in text) + 64 * ("e-" in text)


@pytest.mark.parametrize("seed", range(40))
def test_json_count_is_at_least_the_number_of_items(seed: int) -> None:
    text = RandomJson(seed).text()
    value = json.loads(text)
    expected: Counter[tuple[str, int]] = Counter()
    for what, depth, size in items_of_json(value):
        expected[what, depth] += size
    count = JsonCount(text)

    assert (count.containers, count.keys) == (expected["containers", 0], expected["keys", 0])
    for depth in range(count.levels):
        items = expected["items", depth]
        assert items <= count.items(depth) <= items + expected["containers", 0]
        assert count_items(text, depth, ITEM) == count.items(depth)
        assert count_items(text, depth, BYTE) >= expected["bytes", depth]
        assert count_items(text, depth, UNIT) >= expected["units", depth]
    assert max(depth for _, depth in expected) < count.levels


def test_json_values_below_the_deepest_level_count_at_that_level() -> None:
    text = b"[" * 400 + b"1,2" + b"]" * 400 + b" "
    count = JsonCount(text)

    assert count.levels == DEEPEST + 1
    assert count.containers == 400
    assert sum(count.items(depth) for depth in range(count.levels)) == 402
    assert count_items(text, DEEPEST, UNIT) >= 2


@pytest.mark.parametrize(
    "text", [b"", b"]]]]", b'"', b'"\\', b"{", b"-", b"1e-e-e-5", b"\xff\x00", b"[" * 300 + b"}" * 900]
)
def test_malformed_json_is_counted_to_its_end(text: bytes) -> None:
    assert JsonCount(text).levels >= 1


def test_json_keys_count_at_value_depth_and_brackets_in_strings_are_ignored() -> None:
    text = b'{"a[{,": "]}:,1e-5", "b": {"cc": 1.5}}'
    count = JsonCount(text)

    assert count.keys == 3
    assert [count.items(depth) for depth in range(count.levels)] == [1, 2, 1]
    assert [count_items(text, depth, BYTE) for depth in range(count.levels)] == [0, 4 + 8 + 1, 2]
    assert [count_items(text, depth, UNIT) for depth in range(count.levels)] == [0, 0, 1 + 2 / 4 + 4]


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("levels", [1, 2, 5, DEEPEST + 1])
def test_weighted_sum_equals_the_cost_by_separate_counts(seed: int, levels: int) -> None:
    drawn = RandomJson(seed)
    text = drawn.text()[: None if seed % 2 else 1000]
    weights = array("d", (drawn.random.randrange(100) for _ in range(3 * levels)))
    count = JsonCount(text)

    expected = 7.0 * count.containers + 3.0 * count.keys
    for depth in range(count.levels):
        of_item, of_byte, of_unit = weights[3 * min(depth, levels - 1) :][:3]
        expected += of_item * count.items(depth) + of_byte * count_items(text, depth, BYTE)
        expected += of_unit * count_items(text, depth, UNIT)
    assert weighted_sum(text, weights, 7.0, 3.0) == pytest.approx(expected)
