"""Repairs change records as their options specify, and skip records that they cannot change without a loss."""

from dataclasses import replace
from pathlib import Path

import pytest

from sluicegate.dead_letters.function_repair import read_function
from sluicegate.dead_letters.repairs import LetterContent, RepairFailed, repaired
from sluicegate.dead_letters.value_repairs import BadRepair, JsonPatch, SchemaId, read_patch, schema_id_of
from tests.dead_letters.letters import CONNECT, OWN, letter

CONTENT = LetterContent("orders", b"k", b"v", OWN, 7)


def patch(folder: Path, text: str) -> JsonPatch:
    file = folder / "patch.json"
    file.write_text(text)
    return read_patch(file)


def function(folder: Path, body: str) -> str:
    file = folder / "repairs.py"
    file.write_text(f"from dataclasses import replace\ndef repair(record):\n    {body}\n")
    return f"{file}:repair"


def test_a_patch_changes_values_and_keeps_their_schema_id(tmp_path: Path) -> None:
    repair = patch(tmp_path, '[{"op": "move", "from": "/id", "path": "/order"}]')
    for prefix in (b"", b"\0\0\0\0\x07"):
        found = repair.apply(replace(CONTENT, value=prefix + '{"id": 1, "name": "Ü", "price": 1.50}'.encode()))
        assert found == replace(CONTENT, value=prefix + '{"name":"Ü","price":1.5,"order":1}'.encode())


def test_a_test_operation_leaves_records_out(tmp_path: Path) -> None:
    repair = patch(tmp_path, '[{"op": "test", "path": "/v", "value": 1}, {"op": "remove", "path": "/v"}]')
    assert repair.apply(replace(CONTENT, value=b'{"v": 2}')) is None


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(None, id="null"),
        pytest.param(b"{", id="no JSON"),
        pytest.param(b"\xff", id="no UTF-8"),
        pytest.param(b'{"v": 1}', id="no member"),
        pytest.param(b'{"id": 1, "id": 2}', id="a name twice"),
        pytest.param(b'{"id": 1, "x": 0.12345678901234567890}', id="more digits than a double"),
        pytest.param(b'{"id": 1, "x": 1e999}', id="no double"),
        pytest.param(b'{"id": 1, "x": 1e-99999999999999999999}', id="no exponent of a decimal"),
        pytest.param(b'{"id": 1, "x": ' + b"9" * 5000 + b"}", id="no integer of Python"),
        pytest.param(b'{"id": 1, "x": NaN}', id="a constant of Python"),
        pytest.param(b"[" * 100_000, id="deep"),
    ],
)
def test_a_patch_fails_on_values_that_it_would_damage(value: bytes | None, tmp_path: Path) -> None:
    repair = patch(tmp_path, '[{"op": "remove", "path": "/id"}]')
    with pytest.raises(RepairFailed):
        repair.apply(replace(CONTENT, value=value))


@pytest.mark.parametrize("text", ["{", "{}", '[{"op": "spam"}]', '[{"op": "add", "path": "/a", "value": NaN}]'])
def test_a_file_without_a_patch_is_reported(text: str, tmp_path: Path) -> None:
    with pytest.raises(BadRepair, match=r"patch\.json"):
        patch(tmp_path, text)
    with pytest.raises(BadRepair, match="No such file"):
        read_patch(tmp_path / "missing.json")


def test_a_schema_id_is_replaced() -> None:
    assert SchemaId(258).apply(replace(CONTENT, value=b"\0\0\0\0\x07abc")).value == b"\0\0\0\x01\x02abc"
    for value in (None, b"{}", b"\0\0\0"):
        with pytest.raises(RepairFailed):
            SchemaId(258).apply(replace(CONTENT, value=value))
    with pytest.raises(BadRepair):
        schema_id_of(-1)


def test_a_function_changes_everything_but_the_topic(tmp_path: Path) -> None:
    letter_ = letter((*OWN, *CONNECT))
    text = function(tmp_path, "return replace(record, key=None, value=b'w', headers=(), timestamp=9)")
    found = repaired(letter_, [read_function(text)])
    assert found is not None
    assert (found.record.key, found.record.value, found.headers, found.timestamp) == (None, b"w", (), 9)
    assert (found.topic, found.partition, found.record.offset) == ("orders", 2, letter_.record.offset)

    other = read_function(function(tmp_path, "return replace(record, topic='other')"))
    with pytest.raises(RepairFailed, match="topic"):
        repaired(letter_, [other])


def test_a_function_can_return_the_same_letter_or_none(tmp_path: Path) -> None:
    same = letter(CONNECT)
    assert repaired(same, [read_function(function(tmp_path, "return record"))]) is same
    assert repaired(same, [read_function(function(tmp_path, "return None"))]) is None


@pytest.mark.parametrize("body", ["return {}['x']", "return b'w'", "return replace(record, value='w')"])
def test_a_function_that_fails_is_named_without_contents(body: str, tmp_path: Path) -> None:
    with pytest.raises(RepairFailed, match="function repair"):
        read_function(function(tmp_path, body)).apply(CONTENT)


def test_a_function_that_does_not_exist_is_reported(tmp_path: Path) -> None:
    file = function(tmp_path, "return record").removesuffix(":repair")
    for text in (file, f"{file}:other", f"{tmp_path}/none.py:repair"):
        with pytest.raises(BadRepair):
            read_function(text)


def test_repair_functions_with_different_code_have_different_identities(tmp_path: Path) -> None:
    one, other = (read_function(function(tmp_path, f"return replace(record, value=b'{each}')")) for each in "ab")
    assert one.name == other.name
    assert one.identity != other.identity
