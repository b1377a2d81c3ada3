"""`sluicegate contract` shows what a contract gives topics, and the effect of a change."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from sluicegate.config.loading import load_file
from sluicegate.proxy.cli.commands import app
from tests.config.contracts.written import ORDERS
from tests.config.reading import SMALLEST
from tests.proxy.cli.test_commands import sluicegate


def test_printed_contract_entries_match_applied_entries(tmp_path: Path) -> None:
    contract, main = tmp_path / "c.odcs.yaml", tmp_path / "sluicegate.yaml"
    contract.write_text(ORDERS)
    printed = sluicegate("contract", "import", str(contract)).stdout
    assert "# warning" not in printed
    (tmp_path / "topics.yaml").write_text(printed)

    main.write_text(f"{SMALLEST}topic_files: topics.yaml\n")
    by_file = load_file(main, {}).config.topics
    main.write_text(f"{SMALLEST}contracts: c.odcs.yaml\n")

    assert by_file == load_file(main, {}).config.topics
    assert "#   checked by sluicegate-spark audit: enough: rowCount mustBeGreaterThan 1  (" in printed
    assert "#   not checked: service level availability: not visible in stored records  (" in printed


def test_explain_lists_contract_checks_that_need_more_than_one_record(tmp_path: Path) -> None:
    (tmp_path / "c.odcs.yaml").write_text(ORDERS)
    main = tmp_path / "sluicegate.yaml"
    main.write_text(f"{SMALLEST}contracts: c.odcs.yaml\n")

    shown = sluicegate("explain", "--offline", str(main), "orders.v1").stdout

    assert f"  contract: {tmp_path}/c.odcs.yaml, version 1.2.0\n" in shown
    assert "    checked by sluicegate-spark audit: some-currency: nullValues of currency mustBeLessThan 50%  (" in shown
    assert "    not checked: sql: checks of type sql are not supported  (" in shown


def test_contract_changes_are_classified_as_stricter_or_looser(tmp_path: Path) -> None:
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text(ORDERS)
    new.write_text(ORDERS.replace("invalidValues, mustBe: 0", "invalidValues, mustBe: 1"))

    done = sluicegate("contract", "diff", "--strict", str(old), str(new))

    assert done.returncode == 1
    assert "orders.v1: looser: rule contract.known-currency removed (" in done.stdout


def test_invalid_contract_is_reported_with_line_number(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(ORDERS.replace("minimum: 0", "minimum: low"))

    done = sluicegate("contract", "import", str(tmp_path / "c.yaml"))

    assert (done.returncode, done.stdout) == (2, "")
    assert "c.yaml:14: schema[0].properties[1].logicalTypeOptions.minimum: " in done.stderr


@pytest.mark.parametrize(
    ("was", "becomes", "effect", "words"),
    [
        ("minimum: 0", "minimum: 5", "stricter", "amount.minimum 0 -> 5"),
        ("minimum: 0", "maximum: 5", "looser", "amount.minimum 0 -> none"),
        ("number, required: true", "integer, required: true", "stricter", "amount.type number -> integer"),
        ("number, required: true", "number", "looser", "amount no longer required"),
        ("EUR, USD", "EUR, USD, DM", "looser", "currency.enum [EUR, USD, none] -> [EUR, USD, DM, none]"),
        (
            "      - name: currency",
            "      - {name: new, logicalType: string}\n      - name: currency",
            "stricter",
            "new added",
        ),
        (
            "logicalTypeOptions: {minimum: 0}",
            "logicalTypeOptions: {minimum: 0, multipleOf: 2}",
            "stricter",
            "multipleOf",
        ),
    ],
)
def test_a_change_of_a_schema_is_reported_by_its_property(
    was: str, becomes: str, effect: str, words: str, tmp_path: Path
) -> None:
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text(ORDERS)
    new.write_text(ORDERS.replace(was, becomes, 1))

    lines = CliRunner().invoke(app, ["contract", "diff", str(old), str(new)]).stdout.splitlines()

    assert any(f": {effect}: rule contract." in line and words in line for line in lines), lines


def test_a_change_is_reported_the_same_for_records_in_avro(tmp_path: Path) -> None:
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    avro = ORDERS.replace("format: json", "format: avro")
    old.write_text(avro)
    new.write_text(avro.replace("minimum: 0", "minimum: 5", 1))

    shown = CliRunner().invoke(app, ["contract", "diff", "--registry", "main", str(old), str(new)]).stdout

    assert "stricter: rule contract.schema: amount.minimum 0 -> 5" in shown
