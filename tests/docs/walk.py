"""A reader who follows a page: writes its files, types its commands, and looks whether what is shown comes."""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

import pytest

from tests.broker.child_processes import ending_with_tests
from tests.broker.eventually import eventually
from tests.broker.ports import free_ports
from tests.docs.blocks import Block
from tests.docs.shown import shows
from tests.oracle.java_program import java_command
from tests.oracle.kafka_java import KAFKA_NEW, ROOT, kafka_folder
from tests.pipeline import java_options

_STAYS = re.compile(r"(sluicegate run|sluicegate demo|make run)(?!.*(SECONDS|--seconds))")
"""What a reader leaves running, in another terminal."""
_LOOKS = ("cat ", "curl ", "grep ", "tail ", "ls ")
"""What may be typed again, because it changes nothing: events and counters come a moment later."""
_PACKAGES = {"curl": "curl", "kcat": "kcat", "jq": "jq", "git": "git", "openssl": "openssl"}
"""Debian's, for what a reader is told to have."""
_KAFKA_TOOLS = {
    "kafka-topics.sh": "org.apache.kafka.tools.TopicCommand",
    "kafka-configs.sh": "kafka.admin.ConfigCommand",
    "kafka-console-consumer.sh": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "kafka-console-producer.sh": "org.apache.kafka.tools.ConsoleProducer",
}
_SECONDS = 120
_COMMAND_SECONDS = 600  # a job on Spark, on a busy machine


class Reader:
    """Has a folder and ports of its own, whatever ports the page names, and the commands on the PATH."""

    def __init__(self, folder: Path, broker: str) -> None:
        self.folder = folder
        first = free_ports(16)
        self._ports = {
            "9092": broker.rpartition(":")[2],
            "19092": str(first),
            "9650": str(first + 1),
            "19100": str(first + 2),
        }
        self._ports |= {str(19100 + broker): str(first + 2 + broker) for broker in range(1, 4)}
        # The demo's addresses, as any of a configuration, can be others.
        self._demo = {
            "SLUICEGATE__LISTEN__BOOTSTRAP": f"127.0.0.1:{first}",
            "SLUICEGATE__LISTEN__BROKER_PORTS": str(first + 2),
            "SLUICEGATE__ADMIN__LISTEN": f"127.0.0.1:{first + 1}",
        }
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("SLUICEGATE_")}
        own = {
            "PATH": f"{folder}/.tools:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "NO_COLOR": "1",
            "COLUMNS": "200",
            "LC_ALL": "C.UTF-8",
        }
        self._environment = inherited | java_options.ENVIRONMENT | own
        self._running: subprocess.Popen[bytes] | None = None
        (folder / "docs").symlink_to(ROOT / "docs")  # where the reader is, the repository is
        (folder / "sluicegate.yaml").write_text(self._here((ROOT / "sluicegate.yaml").read_text()))
        self._tools = folder / ".tools"
        self._tools.mkdir()
        for name, program in _KAFKA_TOOLS.items():
            command = " ".join(f"'{part}'" for part in java_command(kafka_folder(KAFKA_NEW), program))
            (self._tools / name).write_text(f'#!/bin/sh\nexec {command} "$@"\n')
            (self._tools / name).chmod(0o755)

    def follows(self, block: Block) -> None:
        """Does what a reader would. Raises AssertionError where the page does not hold."""
        if block.file is not None and block.language != "sh":
            file = self.folder / block.file
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self._here(block.text))
        elif block.language == "sh":
            self._types(block)

    def stop(self) -> None:
        """Ctrl-C in the other terminal."""
        if self._running is not None:
            self._running.send_signal(signal.SIGINT)
            try:
                self._running.wait(30)
            finally:
                self._running.kill()
                self._running.wait()
            self._running = None

    def _types(self, block: Block) -> None:
        command = self._here(block.text)
        for tool, package in _PACKAGES.items():
            if re.search(rf"^(?:.*\| )?{tool} ", command, re.MULTILINE) and shutil.which(tool) is None:
                pytest.skip(f"{block}: needs {tool}, Debian's package {package}")
        shown = None if block.shown is None else self._here(block.shown)
        if _STAYS.match(command):
            self._leaves_running(block, command, shown)
        elif command.startswith(_LOOKS):
            self._looks_until(block, command, shown)
        else:
            there_is = self._said_by(command)
            assert shown is None or shows(shown, there_is), _differs(block, shown, there_is)
            assert shown is not None or "exit status" not in there_is, f"{block}: {there_is}"

    def _looks_until(self, block: Block, command: str, shown: str | None) -> None:
        last = [""]

        def there() -> bool:
            last[0] = self._said_by(command)
            return shows(shown, last[0]) if shown is not None else "exit status" not in last[0]

        try:
            eventually(there, _SECONDS)
        except AssertionError:
            raise AssertionError(_differs(block, shown, last[0])) from None

    def _leaves_running(self, block: Block, command: str, shown: str | None) -> None:
        self.stop()
        output = self.folder / ".output"
        with output.open("wb") as log:
            self._running = self._begun(command.replace("make run", "sluicegate demo"), log)
        end = time.monotonic() + _SECONDS
        while not (shows(shown, output.read_text()) if shown is not None else self._is_open()):
            assert self._running.poll() is None, f"{block}: it ended:\n{output.read_text()}"
            assert time.monotonic() < end, _differs(block, shown, output.read_text())
            time.sleep(0.05)  # neither output nor a port announces itself

    def _is_open(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", int(self._ports["19092"]))) == 0

    def _said_by(self, command: str) -> str:
        """What is printed, and how it ended where that was not well."""
        with (self.folder / ".said").open("w+b") as said:
            process = self._begun(command, said)
            status = process.wait(_COMMAND_SECONDS)
            said.seek(0)
            text = said.read().decode()
        return text if status == 0 else f"{text}exit status {status}\n"

    def _begun(self, command: str, output: IO[bytes]) -> subprocess.Popen[bytes]:
        stays = "exec " if _STAYS.match(command) else ""  # Ctrl-C is for it, not for the shell around it
        return subprocess.Popen(
            ending_with_tests(["bash", "-euo", "pipefail", "-c", f"exec 2>&1\n{stays}{command}"]),
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            env=self._environment | (self._demo if "demo" in command else {}),
        )

    def _here(self, text: str) -> str:
        """With the ports that are free here in place of the page's."""
        return re.sub(r"\b\d{4,5}\b", lambda found: self._ports.get(found[0], found[0]), text)


def _differs(block: Block, shown: str | None, there_is: str) -> str:
    return f"{block}: the page shows\n{shown}\nand there is\n{there_is}"
