"""Applies each worked example of docs/extending.md to a copy of the tree and runs its commands there.

Each `## ` section is an example. Its blocks are applied in order: `python` with the first line `# new file: PATH` is a
new file, `diff` is applied with `patch -p1`, and `sh` runs in the copy. The output must match a `text` block directly
after it, in which `…` matches any text.
"""

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NoReturn

import pytest

from tests.broker.child_processes import killed_with_parent
from tests.docs.blocks import EXTENSIONS, Block, blocks_of
from tests.docs.shown import is_shown_in
from tests.oracle.kafka_java import ROOT

MOST_PRODUCT_FILES = {
    "A rule kind": 3,
    "A configuration key": 2,
    "A metric": 1,
    "A metric of good records": 4,
    "A field of the event": 2,
    "A broker API to rewrite": 1,
    "A `doctor` check": 1,
    "A command": 1,
}
"""The maximum number of product files that the example of a section may touch, without tests and generated pages."""
_PRODUCT = ("config/", "protocol/", "proxy/", "validation/", "pipeline/", "setup.py", "pyproject.toml")
_NEW_FILE = re.compile(r"# new file: (\S+)$")
_CHANGED_FILE = re.compile(r"^\+\+\+ b/(\S+)", re.MULTILINE)
_NOT_COPIED = shutil.ignore_patterns(".*", "__pycache__", "*.c", "*.egg-info", "build", "dist", "node_modules")
"""Files that are not copied: hidden ones (environments, Kafka) and generated ones. Compiled modules are copied."""
_SECONDS = 300


@dataclass(frozen=True, slots=True)
class Example:
    """A section with its blocks."""

    name: str
    blocks: tuple[Block, ...]

    def __str__(self) -> str:
        return self.name

    @property
    def changed_files(self) -> set[str]:
        """Return all files that the example creates or changes."""
        return {file for block in self.blocks for file in files_of(block)}

    @property
    def product_files(self) -> list[str]:
        """Return the files that are neither tests nor pages."""
        return sorted(file for file in self.changed_files if file.startswith(_PRODUCT))


def files_of(block: Block) -> list[str]:
    """Return the files that a block creates or changes."""
    if block.language == "diff":
        return _CHANGED_FILE.findall(block.text)
    new = _NEW_FILE.match(block.first_line) if block.language == "python" else None
    return [new[1]] if new is not None else []


def extension_examples() -> list[Example]:
    """Return the sections, in the page's order."""
    lines, blocks = EXTENSIONS.read_text().splitlines(), blocks_of(EXTENSIONS)
    in_blocks = {block.line + i for block in blocks for i in range(block.text.count("\n") + 1)}
    headings = [(i, line[3:]) for i, line in enumerate(lines, 1) if line.startswith("## ") and i not in in_blocks]
    return [
        Example(heading, tuple(block for block in blocks if line < block.line < end))
        for (line, heading), (end, _) in pairwise([*headings, (len(lines) + 1, "")])
    ]


class Copy:
    """A copy of the tree with its compiled modules, in which `sluicegate` is imported from the copy."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        shutil.copytree(ROOT, folder, symlinks=True, ignore=_NOT_COPIED, dirs_exist_ok=True)
        (folder / ".venv").symlink_to(ROOT / ".venv")
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SLUICEGATE_", "PYTEST_", "TEST_"))
        }
        self._environment = inherited | {
            "PYTHONPATH": str(folder),
            "NO_COLOR": "1",
            "COLUMNS": "200",
            "LC_ALL": "C.UTF-8",
        }

    def apply_block(self, example: Example, block: Block) -> None:
        """Apply a block. If this fails, fail the test with the section, the block and a remedy."""
        for file in files_of(block):
            if list((self._folder / file).parent.glob(f"{Path(file).stem}.*.so")):
                fail_at_block(
                    example, block, f"{file} is compiled, and nothing is compiled here; show the change in a plain file"
                )
        if block.language == "python":
            self._write(example, block)
        elif block.language == "diff":
            self._patch(example, block)
        elif block.language == "sh":
            self._type(example, block)

    def check_style(self, example: Example) -> None:
        """Check and format the files of the example as `make check` does."""
        files = sorted(file for file in example.changed_files if file.endswith(".py"))
        for arguments in (["check"], ["format", "--diff"]):
            status, output = self._run([".venv/bin/ruff", *arguments, "--no-cache", *files], "")
            if status:
                fail_at_block(
                    example, example.blocks[0], f"ruff wants what it and those after it write otherwise\n{output}"
                )

    def _write(self, example: Example, block: Block) -> None:
        files = files_of(block)
        if not files:
            fail_at_block(example, block, 'begin it with "# new file: PATH"')
        path = self._folder / files[0]
        if path.exists():
            fail_at_block(example, block, f"{files[0]} exists already; show what changes in it as a diff")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text.partition("\n")[2])

    def _patch(self, example: Example, block: Block) -> None:
        status, output = self._run(["patch", "-p1", "--no-backup-if-mismatch", "--forward"], block.text)
        if status:
            fail_at_block(
                example, block, f"the diff no longer applies; write it again for the lines as they are now\n{output}"
            )

    def _type(self, example: Example, block: Block) -> None:
        status, output = self._run(["bash", "-euo", "pipefail", "-c", block.text], "")
        if status:
            fail_at_block(
                example,
                block,
                f"it ends with status {status}; correct it, or a block before it\n{block.text}\n{output}",
            )
        if block.shown is not None and not is_shown_in(block.shown, output):
            fail_at_block(
                example, block, f"correct the text after it; the page shows\n{block.shown}\nand there is\n{output}"
            )

    def _run(self, command: list[str], standard_input: str) -> tuple[int, str]:
        ended = subprocess.run(
            killed_with_parent(command),
            cwd=self._folder,
            input=standard_input,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=self._environment,
            timeout=_SECONDS,
            check=False,
            text=True,
        )
        return ended.returncode, ended.stdout


def fail_at_block(example: Example, block: Block, words: str) -> NoReturn:
    """Fail the test with a message about a block of an example."""
    pytest.fail(f'Example "{example}", block at {block}: {words}', pytrace=False)


EXAMPLES = extension_examples()


def test_each_extension_has_an_example() -> None:
    names = [example.name for example in EXAMPLES]

    assert names == list(MOST_PRODUCT_FILES), (
        f"docs/extending.md has the examples {names}, but MOST_PRODUCT_FILES lists others: write the missing example, "
        "or add the new one with the number of product files that it may change"
    )


@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_an_extension_touches_few_files(example: Example) -> None:
    most, files = MOST_PRODUCT_FILES[example.name], example.product_files

    assert 0 < len(files) <= most, (
        f'"{example}" changes {len(files)} files of the product ({", ".join(files)}), more than {most}: '
        "keep related code in one place instead of changing another file"
    )


@pytest.mark.long
@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_an_example_works_in_a_copy_of_the_tree(example: Example, tmp_path: Path) -> None:
    assert any(block.language == "sh" for block in example.blocks), f'"{example}" needs an sh block that runs it'
    copy = Copy(tmp_path)

    for block in example.blocks:
        copy.apply_block(example, block)

    copy.check_style(example)
