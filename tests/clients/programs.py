"""Runs every client in the matrix with one interface: `run(command, bootstrap, topic, *more)` returns its output.

The commands are produce-default and produce-strict (ten records "default 0"... and "strict 0"..., with default and with
the strictest settings), consume (a number of values, in a group), topics, create, and reject. The command reject sends
three records in one batch, the second with a timestamp in nanoseconds, and outputs the client's result for each.
"""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version as installed_version
from pathlib import Path

import confluent_kafka
import pytest

from tests.integration.java import java_tool
from tests.oracle.kafka_java import KAFKA_NEW, KAFKA_NEWEST, KAFKA_OLD, ROOT

HERE = Path(__file__).parent
BUILT = ROOT / ".clients"
COUNT = 10
Run = Callable[..., str]


@dataclass(frozen=True)
class Program:
    """A client. `version` is None if it is not installed; `requirements` names what to install then."""

    name: str
    version: str | None
    run: Run
    requirements: str = ""


def _command(*command: str) -> Run:
    def run(what: str, bootstrap: str, topic: str, *more: str) -> str:
        return run_for_output([*command, bootstrap, what, topic, *more])

    return run


def run_for_output(command: list[str], stdin: str = "") -> str:
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stdout}{done.stderr}"
    return done.stdout


def java_record(
    bootstrap: str, topic: str, timestamp: int, settings: Mapping[str, str], options: Sequence[str] = ()
) -> str:
    """Send one record with Java's producer and these settings; return "ok" or the name of its exception.

    `options` are Java's.
    """
    more = [f"{name}={value}" for name, value in settings.items()]
    return java_tool(str(HERE / "OneRecord.java"), bootstrap, topic, str(timestamp), *more, options=options).strip()


def javascript_record(bootstrap: str, topic: str, timestamp: int, options: Mapping[str, str]) -> str:
    """Send one record with kafkajs and the options of one_record.js; return "ok" or its error."""
    modules = BUILT / "js" / "node_modules"
    node = shutil.which("node")
    if node is None or not (modules / "kafkajs").exists():
        pytest.skip("Node.js and kafkajs are not installed (make clients)")
    program = ["env", f"NODE_PATH={modules}", node, str(HERE / "one_record.js")]
    return run_for_output([*program, bootstrap, topic, str(timestamp), json.dumps(options)]).strip()


def _java(version: str) -> Run:
    producer = "kafka.tools.ConsoleProducer" if version == KAFKA_OLD else "org.apache.kafka.tools.ConsoleProducer"
    own_producer = str(ROOT / "tests/integration/JavaProducer.java")

    def run(what: str, bootstrap: str, topic: str, *more: str) -> str:
        now = time.time_ns() // 1_000_000
        servers = ("--bootstrap-server", bootstrap)
        topics = ("org.apache.kafka.tools.TopicCommand", *servers)
        match what:
            case "produce-default":
                lines = "".join(f"default {i}\n" for i in range(COUNT))
                return java_tool(producer, *servers, "--topic", topic, stdin=lines, version=version)
            case "produce-strict":
                lines = "".join(f"{now} strict {i}\n" for i in range(COUNT))
                arguments = (bootstrap, topic, "zstd", "transactional", "100")
                return java_tool(own_producer, *arguments, stdin=lines, version=version)
            case "consume":
                limits = ("--from-beginning", "--max-messages", more[0], "--group", f"{topic}-group")
                consumer = "org.apache.kafka.tools.consumer.ConsoleConsumer"
                return java_tool(consumer, *servers, "--topic", topic, *limits, version=version)
            case "topics":
                return java_tool(*topics, "--list", version=version)
            case "create":
                return java_tool(*topics, "--create", "--topic", topic, "--partitions", "2", version=version)
            case _:
                lines = f"{now} a\n{now * 1_000_000} b\n{now} c\n"
                return java_tool(own_producer, bootstrap, topic, "none", "plain", "500", stdin=lines, version=version)

    return run


def _kcat(what: str, bootstrap: str, topic: str, *more: str) -> str:
    """Run kcat. It cannot create topics or set timestamps: it creates topics by writing, and sends a null key."""
    kcat = ["kcat", "-b", bootstrap]
    match what:
        case "produce-default":
            return run_for_output([*kcat, "-P", "-t", topic, "-K:"], "".join(f"k:default {i}\n" for i in range(COUNT)))
        case "produce-strict":
            strict = ["-X", "enable.idempotence=true", "-X", "acks=all", "-z", "zstd"]
            return run_for_output(
                [*kcat, *strict, "-P", "-t", topic, "-K:"], "".join(f"k:strict {i}\n" for i in range(COUNT))
            )
        case "consume":
            return run_for_output(
                [*kcat, "-G", f"{topic}-group", "-X", "auto.offset.reset=earliest", "-c", more[0], topic]
            )
        case "topics":
            return run_for_output([*kcat, "-L"])
        case "create":
            return run_for_output([*kcat, "-P", "-t", topic], "made by writing\n")
        case _:
            done = subprocess.run(
                [*kcat, "-P", "-t", topic], input="no key\n", capture_output=True, text=True, timeout=60, check=False
            )
            return done.stdout + done.stderr


def _kcat_version() -> str | None:
    if shutil.which("kcat") is None:
        return None
    output = subprocess.run(["kcat", "-V"], capture_output=True, text=True, check=True).stdout
    return output.partition("Version ")[2].split()[0]


def _go(name: str, module: str) -> Program:
    built = BUILT / "go" / name.removesuffix("-go")
    lines = (HERE / "go" / "go.mod").read_text().splitlines()
    version = next(line.split()[-1] for line in lines if module + " " in line)
    requirements = "Go; `make clients` builds it"
    return Program(name, version if built.exists() else None, _command(str(built)), requirements)


def _kafkajs() -> Program:
    package = BUILT / "js" / "node_modules" / "kafkajs"
    node = shutil.which("node")
    requirements = "Node.js; `make clients` installs it"
    version = "2.2.4" if package.exists() and node is not None else None
    return Program("kafkajs", version, _command(node or "node", str(BUILT / "js" / "main.js")), requirements)


def _python(name: str, version: str) -> Program:
    return Program(name, version, _command(sys.executable, str(HERE / "python_client.py"), name))


PROGRAMS = (
    Program("Java kafka-clients 4.4", KAFKA_NEWEST, _java(KAFKA_NEWEST)),
    Program("Java kafka-clients 4.3", KAFKA_NEW, _java(KAFKA_NEW)),
    Program("Java kafka-clients 3.9", KAFKA_OLD, _java(KAFKA_OLD)),
    _python("confluent-kafka", f"{installed_version('confluent-kafka')}, librdkafka {confluent_kafka.libversion()[0]}"),
    Program("kcat", _kcat_version(), _kcat, "kcat (a Debian package)"),
    _python("aiokafka", installed_version("aiokafka")),
    _python("kafka-python", installed_version("kafka-python")),
    _go("franz-go", "github.com/twmb/franz-go"),
    _go("sarama", "github.com/IBM/sarama"),
    _kafkajs(),
)
