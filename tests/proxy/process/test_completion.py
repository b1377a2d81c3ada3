"""What a shell completes, asked of the shells themselves; and the manual page, made of the same command line."""

import shutil
import subprocess
from pathlib import Path

import pytest

from sluicegate.proxy.process.cli import app
from sluicegate.proxy.process.command_tree import commands_of
from sluicegate.proxy.process.man_page import lines_of
from sluicegate.proxy.reporting.build_info import VERSION
from tests.oracle.kafka_java import ROOT
from tests.proxy.process.test_cli import sluicegate

PAGE = ROOT / "docs/man/sluicegate.1"
NAMES = {command.name for command in commands_of(app)} - {""}


def completed(folder: Path, *words: str) -> set[str]:
    """What a real bash offers for the last of these words."""
    script = folder / "completion.bash"
    script.write_text(sluicegate("completion", "bash").stdout)
    program = (
        'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _sluicegate; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "-uc", program, "bash", str(script), "sluicegate", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return set(done.stdout.split("\n")) - {""}


def test_bash_completes_commands_options_files_and_choices(tmp_path: Path) -> None:
    (tmp_path / "my file.yaml").touch()

    assert completed(tmp_path, "") == NAMES | {"--version", "-h", "--help"}
    assert completed(tmp_path, "do") == {"doctor"}
    assert completed(tmp_path, "doctor", "--") == {"--config", "--json", "--help"}
    assert completed(tmp_path, "doctor", "--config", "my") == {"my file.yaml"}
    assert completed(tmp_path, "check", "my") == {"my file.yaml"}
    assert completed(tmp_path, "completion", "") == {"bash", "zsh", "fish"}
    assert completed(tmp_path, "run", "--upstream", "") == set()


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_other_shells_read_their_script(shell: str, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(sluicegate("completion", shell).stdout)

    assert all(name in script.read_text() for name in NAMES)
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed: Debian's package {shell}")
    done = subprocess.run([shell, "-n", str(script)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_fish_completes(tmp_path: Path) -> None:
    if shutil.which("fish") is None:
        pytest.skip("fish is not installed: Debian's package fish")
    script = tmp_path / "script"
    script.write_text(sluicegate("completion", "fish").stdout)

    done = subprocess.run(
        [
            "fish",
            "--no-config",
            "-c",
            f"source {script}; complete -C 'sluicegate do'; complete -C 'sluicegate doctor --j'",
        ],
        capture_output=True,
        text=True,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
        check=True,
    )

    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["doctor", "--json"]


def test_an_unknown_shell_is_told_which_there_are() -> None:
    done = sluicegate("completion", "tcsh")

    assert done.returncode == 2
    assert "bash" in done.stderr


def test_the_manual_page_is_that_of_the_commands() -> None:
    assert PAGE.read_text().splitlines() == list(lines_of(list(commands_of(app)), VERSION)), "write it again: make man"


@pytest.mark.parametrize(("tool", "package"), [("mandoc", "mandoc"), ("man", "man-db")])
def test_manual_readers_take_the_page(tool: str, package: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is not installed: Debian's package {package}")
    options = ["-T", "lint", "-W", "error"] if tool == "mandoc" else ["--warnings", "-l"]

    done = subprocess.run([tool, *options, str(PAGE)], capture_output=True, text=True, check=False)

    told = done.stdout if tool == "mandoc" else done.stderr
    assert (done.returncode, told) == (0, "")


def test_every_option_and_argument_has_words() -> None:
    silent = [
        (command.name, option.names or option.takes)
        for command in commands_of(app)
        for option in (*command.options, *command.arguments)
        if not option.about
    ]
    assert silent == []
