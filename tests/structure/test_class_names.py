"""Each public class of the product has a name of its own, so that a name in a message, a page or a search means one."""

import ast
from collections import defaultdict
from pathlib import Path

from tests.oracle.kafka_java import ROOT

FOLDERS = ("config", "dead_letters", "pipeline", "protocol", "proxy", "validation")


def owners_of_classes(root: Path) -> dict[str, list[str]]:
    """Return the files that define each public class at their top."""
    owners = defaultdict(list)
    for folder in FOLDERS:
        for file in sorted((root / folder).rglob("*.py")):
            for node in ast.parse(file.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    owners[node.name].append(str(file.relative_to(root)))
    return owners


def test_every_public_class_has_a_name_of_its_own() -> None:
    found = owners_of_classes(ROOT)
    assert len(found) > 500
    assert {name: files for name, files in found.items() if len(files) > 1} == {}


def test_a_class_with_two_owners_is_found(tmp_path: Path) -> None:
    for folder in FOLDERS:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "file.txt").write_text("class Node: ...\n")
    owners = [tmp_path / folder / "nodes.py" for folder in ("config", "proxy")]
    for owner in owners:
        owner.write_text("class Node: ...\nclass _Part: ...\n")

    assert owners_of_classes(tmp_path) == {"Node": [str(owner.relative_to(tmp_path)) for owner in owners]}
