"""The programs in docs/how-to/producers-ci.md, run unchanged, succeed for records with a key and fail for records
without one."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.broker.proxy_process import COMMAND
from tests.clients.programs import BUILT
from tests.clients.test_guide import COMMANDS
from tests.docs.blocks import Block, blocks_of
from tests.oracle.kafka_java import ROOT

pytestmark = pytest.mark.long

PAGE = blocks_of(ROOT / "docs/how-to/producers-ci.md")
PROGRAMS = [block for block in PAGE if block.language in COMMANDS and block.language != "python"]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.file)
def test_a_program_fails_by_the_policy_and_passes_after_the_fix(program: Block, tmp_path: Path) -> None:
    assert program.file is not None
    for block in (program, *(block for block in PAGE if block.language == "yaml")):
        assert block.file is not None
        file = tmp_path / block.file
        file.parent.mkdir(exist_ok=True)
        file.write_text(block.text)
    command = COMMANDS[program.language](tmp_path / program.file)
    path = f"{Path(COMMAND).parent}:{os.environ['PATH']}"
    environment = os.environ | {"NODE_PATH": str(BUILT / "js/node_modules"), "PATH": path}

    for key, status, words in ((["order-1"], 0, "1 record accepted"), ([], 1, "payments: null_key (rejected: ")):
        done = subprocess.run(
            [*command, *key], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300, check=False
        )
        assert (done.returncode, words in done.stdout) == (status, True), done.stdout + done.stderr


def test_the_page_has_three_programs() -> None:
    assert [program.language for program in PROGRAMS] == ["java", "go", "javascript"]
