"""What the demo says once, before anything moves: where everything is, and what to try."""

import os
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

_SENDS_NANOSECONDS = (
    'import time; from confluent_kafka import Producer; p = Producer({"bootstrap.servers": "%s"}); '
    'p.produce("payments", "mine", "k", timestamp=time.time_ns(), on_delivery=print); p.flush()'
)


def introduction(bootstrap: str, admin_port: int | None) -> Iterator[str]:
    """Lines. Commands are whole lines, so that they can be copied whatever the terminal's width."""
    yield "An embedded cluster of three brokers runs in this process. It validates"
    yield "nothing: what is refused, sluicegate refuses. Four producers send to it, and"
    yield "three of them make the usual mistakes."
    yield ""
    yield f"clients connect to  {bootstrap}"
    yield f"what it sees now    http://127.0.0.1:{admin_port}/ (in a terminal: sluicegate top)"
    yield f"metrics             http://127.0.0.1:{admin_port}/metrics"
    yield "limits              times at most a day behind and an hour ahead;"
    yield "                    in topics orders.* every record has a key"
    yield ""
    yield "Try, in another terminal, with whichever of these you have:"
    yield "  # no key on a compacted topic: refused"
    yield f"  echo mine | kcat -P -b {bootstrap} -t orders.eu"
    yield f"  echo mine | kafka-console-producer.sh --bootstrap-server {bootstrap} --topic orders.eu"
    yield "  # nanoseconds where milliseconds belong: refused. Divide by 1_000_000: stored"
    yield f"  {_python()} -c {shlex.quote(_SENDS_NANOSECONDS % bootstrap)}"
    yield f"  curl -s http://127.0.0.1:{admin_port}/metrics | grep refused"
    yield ""
    yield "The tutorial goes on from here: docs/tutorial.md. Ctrl-C ends the demo."


def _python() -> str:
    """The interpreter that has the client, as short as it can be typed."""
    here = Path(sys.executable)
    return str(here.relative_to(Path.cwd())) if here.is_relative_to(Path.cwd()) else os.fspath(here)
