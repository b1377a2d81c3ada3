"""`dead-letters` repairs records before it validates and redrives them."""

import json
from pathlib import Path
from typing import Any

from sluicegate.dead_letters import Headers
from tests.dead_letters.desk import configuration, from_topic, new_topic, run, run_json, stored, write
from tests.dead_letters.letters import CONNECT, OWN

SCHEMA = {"type": "object", "required": ["order"], "properties": {"order": {"type": "integer"}}}
RENAME = [{"op": "move", "from": "/id", "path": "/order"}]


def files(folder: Path, bootstrap: str, original: str, **keys: Any) -> tuple[str, str, str]:
    """Return a configuration that requires a field `order`, a patch that renames `id`, and a function."""
    rules = [{"name": "order", "value": {"schema": {"format": "json", "text": json.dumps(SCHEMA)}}}]
    config = configuration(folder, bootstrap, topics=[{"match": original, "rules": rules, **keys}])
    (folder / "rename.json").write_text(json.dumps(RENAME))
    (folder / "repairs.py").write_text(
        "from dataclasses import replace\n"
        "def empty_order(record):\n"
        "    return None if record.key == b'skip' else replace(record, value=b'{\"order\": 0}')\n"
    )
    return config, str(folder / "rename.json"), f"{folder / 'repairs.py'}:empty_order"


def letters(bootstrap: str, original: str) -> str:
    dead = new_topic(bootstrap, "dead")
    headers: Headers = (
        *OWN,
        *((n, b"0" if n.endswith(b".partition") else v) for n, v in from_topic(CONNECT, original)),
    )
    values = (b'{"id": 1}', b'{"order": 2}', b'{"id": "x"}', b"no JSON")
    keys = (b"a", b"b", b"c", b"skip")
    write(bootstrap, dead, [(key, value, headers) for key, value in zip(keys, values, strict=True)])
    return dead


def test_validate_reports_what_repairs_would_make_valid(kafka_bootstrap: str, tmp_path: Path) -> None:
    original = new_topic(kafka_bootstrap, "orders")
    dead = letters(kafka_bootstrap, original)
    config, rename, function = files(tmp_path, kafka_bootstrap, original)

    found = run_json("validate", dead, "--config", config, "--patch", rename, "--repair", function)
    table = run("validate", dead, "--config", config, "--patch", rename, "--repair", function)

    assert found["accepted"] == 1
    (rejected,) = (each for each in found["verdicts"] if not each["is_accepted"])
    assert rejected["valid_after"] == {"patch rename.json": 1, "function empty_order": 2}
    assert "function empty_order 2, patch rename.json 1" in table


def test_repaired_records_are_validated_planned_and_written(kafka_bootstrap: str, tmp_path: Path) -> None:
    original = new_topic(kafka_bootstrap, "orders")
    dead = letters(kafka_bootstrap, original)
    config, rename, _ = files(tmp_path, kafka_bootstrap, original, samples=True)
    options = ("redrive", dead, "--config", config, "--patch", rename)

    table = run(*options)
    plan = run_json(*options)
    applied = run_json(*options, "--apply", plan["digest"])

    failed = {name for name in plan["remain"] if name.startswith("repair_failed: ")}
    assert (plan["redrive"], plan["repaired"]) == ({original: 1}, 1)
    assert {name: plan["remain"][name] for name in plan["remain"] if name not in failed} == {"rule order": 1}
    assert sum(plan["remain"][name] for name in failed) == 2, "the path does not exist, and the value is not JSON"
    assert "repaired by patch rename.json: 1" in table
    assert 'value before (9 bytes): {"id": 1}' in table
    assert 'value after (11 bytes): {"order":1}' in table
    assert applied["written"] == 1
    (record,) = stored(kafka_bootstrap, original)
    own = [(name.decode(), value) for name, value in OWN]
    assert (record.key(), record.value()) == (b"a", b'{"order":1}')
    assert record.headers() == [*own, ("sluicegate.redrive.attempts", b"1")]


def test_the_plan_shows_contents_only_with_samples(kafka_bootstrap: str, tmp_path: Path) -> None:
    original = new_topic(kafka_bootstrap, "orders")
    dead = letters(kafka_bootstrap, original)
    config, rename, _ = files(tmp_path, kafka_bootstrap, original)
    table = run("redrive", dead, "--config", config, "--patch", rename)
    assert "repaired by patch rename.json: 1" in table
    assert "value before" not in table


def test_a_redrive_plan_is_applied_only_with_its_repairs(kafka_bootstrap: str, tmp_path: Path) -> None:
    original = new_topic(kafka_bootstrap, "orders")
    dead = letters(kafka_bootstrap, original)
    config, rename, function = files(tmp_path, kafka_bootstrap, original)
    options = ("redrive", dead, "--config", config, "--repair", function)
    plan = run_json(*options)

    assert plan["remain"] == {"left_out_by_repair": 1}
    assert "the plan has changed" in run(*options, "--patch", rename, "--apply", plan["digest"], code=1)
    file = Path(function.partition(":")[0])
    file.write_text(file.read_text().replace('"order": 0', '"order": 1'))
    assert "the plan has changed" in run(*options, "--apply", plan["digest"], code=1)
    assert stored(kafka_bootstrap, original) == []


def test_a_repaired_schema_id_is_written(kafka_bootstrap: str, tmp_path: Path) -> None:
    original, dead = new_topic(kafka_bootstrap, "orders", 3), new_topic(kafka_bootstrap, "dead")
    write(kafka_bootstrap, dead, [(b"a", b"\0\0\0\0\x07abc", from_topic(CONNECT, original))])
    config = configuration(tmp_path, kafka_bootstrap)
    options = ("redrive", dead, "--config", config, "--schema-id", "258")

    run_json(*options, "--apply", run_json(*options)["digest"])

    assert [each.value() for each in stored(kafka_bootstrap, original)] == [b"\0\0\0\x01\x02abc"]


def test_a_repair_that_cannot_be_used_ends_the_command(kafka_bootstrap: str, tmp_path: Path) -> None:
    config = configuration(tmp_path, kafka_bootstrap)
    output = run("redrive", "dead", "--config", config, "--patch", str(tmp_path / "none.json"), code=2)
    assert "none.json: No such file or directory" in output
