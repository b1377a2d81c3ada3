"""Log lines never block a caller, are written whole or not at all, are counted when lost, and are safe to print."""

import json
import os
import re
import select
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from sluicegate.proxy.reporting.logs.writer import LogWriter
from tests.broker.child_processes import killed_with_parent
from tests.broker.eventually import eventually


def json_line(line: dict[str, Any]) -> bytes:
    return json.dumps(line).encode() + b"\n"


def lost_lines_fields(count: int) -> dict[str, Any]:
    return {"lost": count}


def logging_program(body: str, **how: Any) -> "subprocess.Popen[bytes]":
    """A process that logs as `sluicegate run` does; `log` is at hand."""
    text = f"""
        import logging, os, sys, time, warnings, structlog
        from sluicegate.config.model import Log
        from sluicegate.proxy.reporting.logs.setup import queued_logging, log_lines_dropped
        log = structlog.get_logger("test")
        {textwrap.indent(textwrap.dedent(body), " " * 8).strip()}
        """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(killed_with_parent([sys.executable, "-c", textwrap.dedent(text)]), env=environment, **how)


def lines_of(body: str, log_format: str = "json") -> list[str]:
    """What a program writes to standard error within the block."""
    block = f'with queued_logging(Log(format="{log_format}")):\n' + textwrap.indent(textwrap.dedent(body), "    ")
    process = logging_program(block, stderr=subprocess.PIPE)
    _, told = process.communicate(timeout=30)
    assert process.returncode == 0, told
    return told.decode("utf-8").split("\n")[:-1]


def test_full_disk_does_not_block_logging_and_lost_lines_are_counted() -> None:
    body = """
    with queued_logging(Log(format="json")):
        begin = time.monotonic()
        for i in range(1000):
            log.warning("rejected", n=i)
        print(time.monotonic() - begin < 10)
    print(log_lines_dropped())
    """
    with Path("/dev/full").open("wb") as full:
        process = logging_program(body, stderr=full, stdout=subprocess.PIPE)
        told, _ = process.communicate(timeout=30)

    assert process.returncode == 0
    assert told.decode().split() == ["True", "1000"]


def test_unread_pipe_does_not_block_logging_or_shutdown() -> None:
    body = """
    with queued_logging(Log(format="json")):
        begin = time.monotonic()
        for i in range(20_000):
            log.warning("rejected", n=i, padding="x" * 100)
        logging.getLogger("asyncio").error("what libraries say")
        warnings.warn("what the interpreter says")
        print(time.monotonic() - begin < 10, log_lines_dropped() >= 20_000 - 10_000 - 1000)
    """
    process = logging_program(body, stderr=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert process.wait(40) == 0
        assert process.stdout is not None
        assert process.stdout.read() == b"True True\n"
    finally:
        process.kill()
        process.communicate()


def test_lost_lines_are_reported_once_pipe_is_read_again() -> None:
    reading, writing = os.pipe()
    writer = LogWriter(writing, json_line, lost_lines_fields, max_lines=50)
    for n in range(5000):
        writer.put({"n": n, "padding": "x" * 1000})
    eventually(lambda: writer.dropped > 0)

    lines = b""
    while select.select([reading], [], [], 2)[0]:
        lines += os.read(reading, 1 << 20)
    writer.put({"n": "after"})
    writer.close(10)
    lines += os.read(reading, 1 << 20)
    os.close(reading)
    os.close(writing)

    told = [json.loads(line) for line in lines.splitlines()]
    assert len([line for line in told if "n" in line]) + writer.dropped == 5001
    assert sum(line.get("lost", 0) for line in told) == writer.dropped
    assert told[-1]["n"] == "after"


def test_closing_writes_the_queued_lines() -> None:
    lines = lines_of("for n in range(3000): log.info('said', n=n)")
    assert [json.loads(line)["n"] for line in lines] == list(range(3000))


def test_partial_log_line_is_removed_and_reported_as_lost(tmp_path: Path) -> None:
    """A limit on the file's size stands for the full disk: the first line that crosses it is written in part."""
    body = """
    import resource
    from sluicegate.proxy.reporting.logs.writer import LogWriter
    import json
    writer = LogWriter(2, lambda line: json.dumps(line).encode() + b"\\n", lambda count: {"lost": count})
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
    for n in range(30):
        writer.put({"n": n, "padding": "x" * 50})
    while writer._queue or writer.dropped < 10: time.sleep(0.01)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    writer.put({"n": "after"})
    writer.close(5)
    print(writer.dropped)
    """
    with (tmp_path / "log").open("wb") as file:
        process = logging_program(body, stderr=file, stdout=subprocess.PIPE)
        told, _ = process.communicate(timeout=30)

    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    written = [line["n"] for line in lines if "n" in line]
    assert written == [*range(len(written) - 1), "after"]
    assert sum(line.get("lost", 0) for line in lines) == int(told) == 31 - len(written)


@pytest.mark.parametrize("log_format", ["json", "pretty"])
def test_control_characters_of_clients_are_escaped_in_log_lines(log_format: str) -> None:
    lines = lines_of(
        r"""
        evil = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202eabc\u2028\u2066def\r\nforged\u200f\ufeff\ud800"
        log.warning("rejected", client_id=evil, topics=[evil], nested={evil: evil})
        try:
            raise ValueError(evil)
        except ValueError as error:
            log.error("failed", exc_info=error)
        """,
        log_format,
    )
    colours = re.compile("\x1b\\[[0-9;]*m")
    assert all(colours.sub("", line).isprintable() for line in lines)
    assert not any(line.startswith("forged") for line in lines)
    assert "x1b]0;owned" in lines[0] or "u001b]0;owned" in lines[0]


def test_long_values_are_truncated_with_their_length_and_odd_values_are_logged() -> None:
    lines = lines_of(
        """
        class Unsayable:
            def __str__(self): raise RuntimeError("no")
        log.warning("w" * 100_000, text="x" * 5000, number=10**6000, many=list(range(500)), raw=bytes(5000),
                    odd=Unsayable(), deep=[[[[[[["x" * 5000]]]]]]], nan=float("nan"))
        log.warning("after")
        """
    )
    first, after = (json.loads(line) for line in lines)
    assert first["text"].endswith("x… (5000 characters)")
    assert first["event"].endswith("w… (100000 characters)")
    assert first["number"] == "a number of 19932 bits"
    assert first["many"][-1] == "and 480 more"
    assert len(lines[0]) <= 4096, "a pipe takes it whole or not at all"
    assert after["event"] == "after"


def test_internal_error_is_logged_with_twelve_frames_and_no_source() -> None:
    (line,) = lines_of(
        """
        def deep(n):
            secret = "hunter2"
            if n: deep(n - 1)
            raise ValueError("message " + "m" * 5000)
        try:
            deep(300)
        except ValueError as error:
            log.error("failed", exc_info=error)
        """
    )
    told = json.loads(line)["exception"]
    assert told.startswith("ValueError: message mmm")
    assert told.count(" deep") == 12
    assert "hunter2" not in line


def test_errors_reported_by_interpreter_are_logged_once_a_minute() -> None:
    lines = lines_of(
        """
        import asyncio, threading
        async def main():
            def fails(): raise ValueError("in a callback")
            for _ in range(50):
                asyncio.get_running_loop().call_soon(fails)
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        asyncio.run(main())
        class Finalised:
            def __del__(self): raise KeyError("in a finaliser")
        for _ in range(50):
            Finalised()
        def ends(): raise TypeError("in a thread")
        thread = threading.Thread(target=ends, name="mine"); thread.start(); thread.join()
        """
    )
    told = [json.loads(line) for line in lines]
    assert [line["exception"].partition("\n")[0] for line in told] == [
        "ValueError: in a callback",
        "KeyError: 'in a finaliser'",
        "TypeError: in a thread",
    ]


def test_line_that_cannot_be_rendered_is_counted_and_next_line_is_written() -> None:
    reading, writing = os.pipe()

    def render(line: dict[str, Any]) -> bytes:
        if "bad" in line:
            raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")
        return json_line(line)

    writer = LogWriter(writing, render, lost_lines_fields)
    writer.put({"bad": 1})
    writer.put({"n": 1})
    writer.close(5)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = [json.loads(line) for line in pipe]
    assert {"n": 1} in told
    assert {"lost": 1} in told
    assert writer.dropped == 1


def test_lines_of_several_processes_do_not_interleave_in_one_file_on_full_disk(tmp_path: Path) -> None:
    body = """
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
    with queued_logging(Log(format="json")):
        for n in range(200):
            log.info("said", pid=os.getpid(), n=n, padding="x" * (n % 90))
    """
    with (tmp_path / "log").open("ab") as file:
        processes = [logging_program(body, stderr=file) for _ in range(3)]
        assert [process.wait(30) for process in processes] == [0, 0, 0]

    lines = (tmp_path / "log").read_text().splitlines()
    assert len(lines) > 100
    assert all(json.loads(line)["level"] for line in lines)
