"""Runs classes of Kafka's jars, or single source files against them."""

import subprocess
from collections.abc import Sequence

from tests.oracle.kafka_java import KAFKA_NEW, kafka_folder


def java_tool(
    program: str, *arguments: str, stdin: str = "", options: Sequence[str] = (), version: str = KAFKA_NEW
) -> str:
    """What it printed; `options` are for Java itself."""
    done = subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", *options, "-cp", f"{kafka_folder(version)}/*", program, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
