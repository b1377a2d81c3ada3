"""A contract is parsed as the standard's own package does it. Content that the standard does not allow is an error."""

from pathlib import Path

import pytest
import yaml
from open_data_contract_standard.model import OpenDataContractStandard

from sluicegate.config.contracts.document import checked_contract, value_of
from sluicegate.config.files.yaml_source import read_file
from tests.config.contracts.written import ORDERS, contract_with_fields


def test_parsed_contract_equals_that_of_the_open_data_contract_package(tmp_path: Path) -> None:
    scalars = "[yes, 'yes', 12, '12', 0x1F, 1_000, 1.5, ~, null, '', Off, 1:30, 010]"
    text = contract_with_fields(f"[{{name: a, examples: {scalars}}}]")
    (tmp_path / "c.yaml").write_text(text)

    held = checked_contract(read_file(tmp_path / "c.yaml", value_of))

    assert not held.problems
    assert held.data == yaml.safe_load(text)
    schema = OpenDataContractStandard.from_string(text).schema_
    assert schema is not None and schema[0].properties is not None
    assert held.data["schema"][0]["properties"][0]["examples"] == schema[0].properties[0].examples


@pytest.mark.parametrize(
    ("was", "becomes", "wrong"),
    [
        ("v3.1.0", "v2.2.2", "F:1: apiVersion: version 3 of the Open Data Contract Standard is read; found v2.2.2"),
        ("    physicalName", "    physicalNam", "F:11: schema[0].physicalNam: the Open Data Contract Standard has no"),
        ("metric: rowCount", "metric: rows", 'F:21: schema[0].quality[0].metric: "rows" is not one of'),
        (
            "minimum: 0",
            "minimum: low",
            'F:14: schema[0].properties[1].logicalTypeOptions.minimum: "low" is not of type',
        ),
        ("id: orders\n", "", 'F: "id" is a required property'),
        ("value: 99", "value: .inf", "F:25: a number that JSON does not have"),
        ("value: 99", "value: !x 99", "F:25: tags (!…) are not supported"),
        ("status: active", "status: active\nstatus: draft", "F:6: status: duplicate key, first at F:5"),
        ("version: 1.2.0", "version: [", "F:6: not YAML"),
    ],
)
def test_contract_error_reports_key_and_line(was: str, becomes: str, wrong: str, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(ORDERS.replace(was, becomes, 1))

    (problem, *_) = (str(each).replace(str(file), "F") for each in checked_contract(read_file(file, value_of)).problems)

    assert problem.startswith(wrong)


def test_rejects_contract_file_that_is_too_large_or_nested_too_deeply(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    for text, wrong in (
        ("#" * ((16 << 20) + 1), "more than 16 MiB"),
        (contract_with_fields("[{name: a, examples: " + "[" * 2000 + "]" * 2000 + "}]"), "nested too deeply"),
    ):
        file.write_text(text)
        (problem,) = checked_contract(read_file(file, value_of)).problems
        assert wrong in str(problem)
