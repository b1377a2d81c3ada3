"""Disturbs a running job as soon as one of its tasks has ended and others are running."""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tests.broker.eventually import eventually

_EXECUTOR = b"CoarseGrainedExecutorBackend"


@contextmanager
def disturb_once(is_time: Callable[[], bool], act: Callable[[], Any]) -> Iterator[None]:
    """Call `act` in a thread as soon as `is_time` returns true. Raises AssertionError if the block ends before that."""
    ended, failed = threading.Event(), list[BaseException]()

    def wait_and_act() -> None:
        try:
            while not (ended.is_set() or is_time()):
                time.sleep(0.005)  # a task takes a few tenths of a second
            assert not ended.is_set(), "the job ended before it could be disturbed"
            act()
        except BaseException as error:  # raised in the waiting thread
            failed.append(error)

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
    if failed:
        raise failed[0]


def stage_half_done(spark: SparkSession) -> Callable[[], bool]:
    """Return a function that reports whether a stage has ended tasks and running tasks."""
    return lambda: any(ended > 0 and tasks_running > 0 for ended, tasks_running in _tasks_of_stages(spark))


def tasks_running(spark: SparkSession) -> Callable[[], bool]:
    """Return a function that reports whether tasks are running."""
    return lambda: any(tasks_running > 0 for _, tasks_running in _tasks_of_stages(spark))


def _tasks_of_stages(spark: SparkSession) -> list[tuple[int, int]]:
    """Return the numbers of ended and of running tasks of each active stage."""
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    return [(stage.numCompletedTasks, stage.numActiveTasks) for stage in stages if stage is not None]


def count_executors() -> list[int]:
    """Return the process ids of the session's executors on this machine."""
    return [pid for pid in _below(os.getpid()) if _EXECUTOR in _command_of(pid)]


def kill_an_executor() -> None:
    """Kill the first executor at once."""
    os.kill(eventually(count_executors, what="an executor")[0], signal.SIGKILL)


def kill_all_executors() -> None:
    """Kill all executors at once, busy or not."""
    for pid in count_executors():
        os.kill(pid, signal.SIGKILL)


def kill_an_executor_at_work() -> None:
    """Kill the executor whose Python is busy, because it has forked a worker."""
    running = eventually(count_executors, what="an executor")
    os.kill(max(running, key=lambda pid: len(_below(pid))), signal.SIGKILL)


def _command_of(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""  # the process has ended in the meantime


def _below(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
        children = [int(child) for each in threads for child in (each / "children").read_text().split()]
    except OSError:
        return []  # the process has ended in the meantime
    return [pid, *(below for child in children for below in _below(child))]
