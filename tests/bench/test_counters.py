"""The instructions of a live process are counted if the machine allows it; otherwise there is no count."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from shutil import which

import pytest

from bench.counters import Callgrind, Counter, counter, instructions_in

_PROGRAM = """
import sys
for line in sys.stdin:
    sum(range(int(line)))
    print(flush=True)
"""


@pytest.mark.parametrize(
    ("text", "counted"),
    [
        ("# started on Sun Nov 22\n\n8123456,,instructions:u,100,100.00,,\n", 8_123_456),
        ("<not supported>,,instructions:u,0,100.00,,\n", None),
        ("<not counted>,,instructions:u,0,0.00,,\n", None),
        ("", None),
    ],
)
def test_the_output_of_perf_is_parsed(text: str, counted: int | None) -> None:
    """As perf-stat(1) describes -x: value, unit, event."""
    if counted is not None:
        assert instructions_in(text) == counted
        return
    with pytest.raises(RuntimeError, match="counts no instructions"):
        instructions_in(text)


@pytest.fixture
def perf_stat_output(tmp_path: Path) -> Iterator[tuple[Counter, subprocess.Popen[str]]]:
    try:
        with_counter = counter(tmp_path)
    except RuntimeError as error:
        pytest.skip(str(error))
    command = [*with_counter.prefix, sys.executable, "-c", _PROGRAM]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield with_counter, process
        process.kill()


@pytest.mark.long
def test_twice_the_work_takes_twice_the_counted_instructions(
    perf_stat_output: tuple[Counter, subprocess.Popen[str]],
) -> None:
    with_counter, process = perf_stat_output
    assert process.stdin is not None and process.stdout is not None
    to, answers = process.stdin, process.stdout

    def request_work(size: int) -> None:
        to.write(f"{size}\n")
        to.flush()
        answers.readline()

    request_work(1000)
    once, twice = (with_counter.count(process.pid, lambda s=size: request_work(s)) for size in (100_000, 200_000))

    assert 1.8 < twice / once < 2.2


@pytest.mark.skipif(which("callgrind_control") is None, reason="there is no valgrind")
def test_a_process_outside_callgrind_is_not_counted(tmp_path: Path) -> None:
    with (
        subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process,
        pytest.raises(RuntimeError, match="callgrind_control"),
    ):
        try:
            Callgrind(tmp_path).count(process.pid, lambda: None)
        finally:
            process.kill()
