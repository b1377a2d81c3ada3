"""Follows a page as a reader does: writes its files, types its commands, and compares the output."""

import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import pytest

from tests.broker.child_processes import ProcessGroup
from tests.broker.eventually import eventually
from tests.broker.ports import free_ports
from tests.dead_letters.writer_programs import jars_of
from tests.docs.blocks import Block
from tests.docs.shown import is_shown_in
from tests.oracle.java_program import java_command
from tests.oracle.kafka_java import KAFKA_NEW, ROOT, kafka_folder
from tests.pipeline import java_options
from tests.pipeline.commands import RepeatedCommand

_PROXY = re.compile(r"(sluicegate run|sluicegate demo|make run)(?!.*(SECONDS|--seconds))")
_STAYS = re.compile(rf"{_PROXY.pattern}|.*# until Ctrl-C$")
"""Commands that a reader leaves running in another terminal."""
_JOB = re.compile(r"sluicegate-spark [^|&;<>$\n]+\n?")
"""A block that only starts a job. All jobs of a page share a session; they run the code of the installed command."""
_READS = ("cat ", "curl ", "grep ", "tail ", "ls ")
"""Commands that may be repeated, because they change nothing: events and counters appear a moment later."""
_PACKAGES = {"curl": "curl", "kcat": "kcat", "jq": "jq", "git": "git", "openssl": "openssl"}
"""Debian's packages of the programs that pages require."""
_LETTER_WRITERS = re.compile(r"connect-standalone\.sh|kafka-streams/")
"""Commands that need Kafka Connect or Kafka Streams."""
_KAFKA_TOOLS = {
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
    "kafka-console-consumer.sh": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer.sh": "org.apache.kafka.tools.ConsoleProducer",
}
_SECONDS = 120
_COMMAND_SECONDS = 600  # enough for a Spark job or a download on a busy machine


class Reader:
    """Has its own folder and ports, whatever ports the page names.

    `furnished`: the commands are on the PATH, and so are Kafka's tools. Otherwise nothing of the project is there until
    the page installs it.
    """

    def __init__(self, folder: Path, broker: str, *, furnished: bool = True) -> None:
        self.folder = folder
        first = free_ports(16)
        self._ports = {
            "9092": broker.rpartition(":")[2],
            "19092": str(first),
            "9650": str(first + 1),
            "19100": str(first + 2),
            "8083": str(first + 15),
        }
        self._ports |= {str(19100 + broker): str(first + 2 + broker) for broker in range(1, 4)}
        # The demo has fixed addresses, which the environment can override as in any configuration.
        self._demo = {
            "SLUICEGATE__LISTEN__BOOTSTRAP": f"127.0.0.1:{first}",
            "SLUICEGATE__LISTEN__BROKER_PORT_BASE": str(first + 2),
            "SLUICEGATE__ADMIN__LISTEN": f"127.0.0.1:{first + 1}",
        }
        own_bin = str(Path(sys.executable).parent)
        path = [place for place in os.environ["PATH"].split(":") if place != own_bin]
        inherited = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("SLUICEGATE_") and name not in ("PYTHONPATH", "VIRTUAL_ENV")
        }
        own = {
            "PATH": ":".join([f"{folder}/.tools", own_bin, *path] if furnished else path),
            "NO_COLOR": "1",
            "COLUMNS": "200",
            "LC_ALL": "C.UTF-8",
            "PYTEST_ADDOPTS": "-o asyncio_default_fixture_loop_scope=function",  # readers have no pytest-asyncio
        }
        self._environment = inherited | java_options.ENVIRONMENT | own
        self._activation = ""
        self._running: ProcessGroup | None = None
        self._jobs = RepeatedCommand(self._environment, folder=folder) if furnished else None
        if furnished:
            self._furnish()

    def run_block(self, block: Block) -> None:
        """Do what a reader would do. Raises AssertionError if the page is wrong."""
        if block.file is not None and block.language != "sh":
            file = self.folder / block.file
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self._here(block.text))
        elif block.language == "sh":
            self._type(block)

    def stop(self) -> None:
        """Close all terminals."""
        self._interrupt()
        if self._jobs is not None:
            self._jobs.end()

    def _interrupt(self) -> None:
        """Press Ctrl-C in the other terminal."""
        if self._running is not None:
            self._running.interrupt()
            try:
                self._running.process.wait(30)
            finally:
                self._running.end()
            self._running = None

    def _furnish(self) -> None:
        """Put the repository's pages and Kafka's tools and jars into the folder."""
        (self.folder / "docs").symlink_to(ROOT / "docs")
        (self.folder / "kafka-clients").symlink_to(kafka_folder(KAFKA_NEW))
        (self.folder / "sluicegate.yaml").write_text(self._here((ROOT / "sluicegate.yaml").read_text()))
        (self.folder / ".tools").mkdir()
        for name, program in _KAFKA_TOOLS.items():
            self._write_tool(name, kafka_folder(KAFKA_NEW), program)

    def _furnish_letter_writers(self) -> None:
        """Put Kafka Connect and the jars of Kafka Streams into the folder."""
        if not (self.folder / "kafka-streams").exists():
            jars = jars_of("kafka")
            (self.folder / "kafka-streams").symlink_to(jars)
            self._write_tool("connect-standalone.sh", jars, "org.apache.kafka.connect.cli.ConnectStandalone")

    def _write_tool(self, name: str, jars: Path, program: str) -> None:
        command = " ".join(f"'{part}'" for part in java_command(jars, program))
        file = self.folder / ".tools" / name
        file.write_text(f'#!/bin/sh\nexec {command} "$@"\n')
        file.chmod(0o755)

    def _type(self, block: Block) -> None:
        command = self._here(block.text)
        for tool, package in _PACKAGES.items():
            if re.search(rf"^(?:.*\| )?{tool} ", command, re.MULTILINE) and shutil.which(tool) is None:
                pytest.skip(f"{block}: needs {tool}, Debian's package {package}")
        if _LETTER_WRITERS.search(command):
            self._furnish_letter_writers()
        shown = None if block.shown is None else self._here(block.shown)
        if _STAYS.match(command):
            self._leave_running(block, command, shown)
        elif command.startswith(_READS):
            self._repeat(block, command, shown)
        else:
            output = self._output_of(command)
            assert shown is None or is_shown_in(shown, output), _difference(block, shown, output)
            assert shown is not None or "exit status" not in output, f"{block}: {output}"
        if command.startswith("source "):
            self._activation = command  # applies to every later command of this terminal

    def _repeat(self, block: Block, command: str, shown: str | None) -> None:
        last = [""]

        def is_shown() -> bool:
            last[0] = self._output_of(command)
            return is_shown_in(shown, last[0]) if shown is not None else "exit status" not in last[0]

        try:
            eventually(is_shown, _SECONDS)
        except AssertionError:
            raise AssertionError(_difference(block, shown, last[0])) from None

    def _leave_running(self, block: Block, command: str, shown: str | None) -> None:
        self._interrupt()
        output = self.folder / ".output"
        with output.open("wb") as log:
            self._running = self._start(command, log)
        if shown is None and not _PROXY.match(command):
            return  # the page shows later what this program writes
        end = time.monotonic() + _COMMAND_SECONDS
        while not (is_shown_in(shown, output.read_text()) if shown is not None else self._is_open()):
            assert self._running.process.poll() is None, f"{block}: the command ended:\n{output.read_text()}"
            assert time.monotonic() < end, _difference(block, shown, output.read_text())
            time.sleep(0.05)  # there is no event for new output or an open port

    def _is_open(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", int(self._ports["19092"]))) == 0

    def _output_of(self, command: str) -> str:
        """Return the output, followed by the exit status unless it is 0."""
        if self._jobs is not None and _JOB.fullmatch(command):
            status, text = self._jobs.status_and_output(shlex.split(command)[1:])
        else:
            status, text = self._typed(command)
        return text if status == 0 else f"{text}exit status {status}\n"

    def _typed(self, command: str) -> tuple[int, str]:
        with (self.folder / ".command-output").open("w+b") as file:
            group = self._start(command, file)
            try:
                status = group.process.wait(_COMMAND_SECONDS)
            finally:
                group.end()
            file.seek(0)
            return status, file.read().decode()

    def _start(self, command: str, output: IO[bytes]) -> ProcessGroup:
        stays = "exec " if _STAYS.match(command) else ""  # Ctrl-C must reach the command and not the shell that runs it
        is_demo = "demo" in command or command.startswith("make run")
        return ProcessGroup(
            ["bash", "-euo", "pipefail", "-c", f"exec 2>&1\n{self._activation}\n{stays}{command}"],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            env=self._environment | (self._demo if is_demo else {}),
        )

    def _here(self, text: str) -> str:
        """Return the text with free ports instead of the page's ports."""
        return re.sub(r"\b\d{4,5}\b", lambda found: self._ports.get(found[0], found[0]), text)


def _difference(block: Block, shown: str | None, output: str) -> str:
    return f"{block}: the page shows\n{shown}\nbut the output is\n{output}"
