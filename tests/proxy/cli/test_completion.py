"""Completion of the command line in the shells themselves, and the help of every option and argument."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer

from sluicegate.proxy.cli.commands import app
from tests.broker.proxy_process import COMMAND

GROUP: Any = typer.main.get_command(app)
BASH = """
source <(sluicegate --show-completion)
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_sluicegate_completion sluicegate
printf '%s\\n' "${COMPREPLY[@]}"
"""
ZSH = """
compdef() { :; }
_describe() { print -r -l -- "${(@P)3}"; }
_arguments() { print -r -- "$@"; }
eval "$(sluicegate --show-completion)"
words=("$@"); CURRENT=$#
_sluicegate_completion
"""
FISH = """
sluicegate --show-completion | source
complete -C "$argv"
"""


def run_completion_in_shell(shell: str, program: str, folder: Path, *words: str) -> str:
    """Return what a real shell prints; each of these starts `sluicegate` by its name."""
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed: Debian's package {shell}")
    options = {"bash": ["--norc", "-c", program, "bash"], "zsh": ["-f", "-c", program, "zsh"]}
    done = subprocess.run(
        [shell, *options.get(shell, ["--no-config", "-c", program]), *words],
        cwd=folder,
        env={"HOME": str(folder), "PATH": f"{Path(COMMAND).parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.long
def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    def bash_completions(*words: str) -> set[str]:
        return set(run_completion_in_shell("bash", BASH, tmp_path, "sluicegate", *words).split())

    assert bash_completions("") == set(GROUP.commands)
    assert bash_completions("do") == {"doctor"}
    assert bash_completions("doctor", "--") == {"--config", "--client-config", "--json", "--help"}


@pytest.mark.long
def test_zsh_completes_commands_and_options(tmp_path: Path) -> None:
    assert "doctor" in run_completion_in_shell("zsh", ZSH, tmp_path, "sluicegate", "do")
    assert "--json" in run_completion_in_shell("zsh", ZSH, tmp_path, "sluicegate", "doctor", "--")


@pytest.mark.long
def test_fish_completes_commands_and_options(tmp_path: Path) -> None:
    def fish_completions(line: str) -> list[str]:
        return [line.split("\t")[0] for line in run_completion_in_shell("fish", FISH, tmp_path, line).splitlines()]

    assert fish_completions("sluicegate do") == ["doctor"]
    assert fish_completions("sluicegate doctor --j") == ["--json"]


def test_every_option_and_argument_has_help() -> None:
    without = [
        (name, parameter.name)
        for name, command in (("", GROUP), *GROUP.commands.items())
        for parameter in command.params
        if not parameter.help
    ]
    assert without == []
