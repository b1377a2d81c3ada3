"""Sends a signal to this process during a chosen Java call."""

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any

import pytest
from py4j import java_gateway
from py4j.clientserver import ClientServerConnection
from pyspark.sql import SparkSession

from sluicegate.pipeline.runs.results import java_classes


class SignalMoment(Enum):
    """The moment at which the signal arrives."""

    BEFORE = "before the call is sent"
    AWAITED = "while the response is awaited"
    AFTER = "after the response has arrived"


class JavaCalls:
    """Counts the main thread's calls of Java. The signal arrives in call number `at`; `arrived` is the command of that
    call."""

    def __init__(self, at: int | None, moment: SignalMoment, number: signal.Signals) -> None:
        self.made = 0
        self.arrived: str | None = None
        self._at = at
        self._moment = moment
        self._number = number

    def send(self, connection: Any, command: str) -> Any:
        """Forward a call, and send the signal if it is the chosen call."""
        if threading.current_thread() is not threading.main_thread():
            return _SEND(connection, command)
        self.made += 1
        if self.made != self._at:
            return _SEND(connection, command)
        self.arrived = command
        if self._moment is SignalMoment.BEFORE:
            signal.raise_signal(self._number)
        elif self._moment is SignalMoment.AWAITED:
            connection.stream = _Interrupted(connection.stream, self._number)
        response = _SEND(connection, command)
        if self._moment is SignalMoment.AFTER:
            signal.raise_signal(self._number)
        return response


class _Interrupted:
    """A stream; the signal arrives when the stream is read."""

    def __init__(self, stream: Any, number: signal.Signals) -> None:
        self._stream = stream
        self._number = number

    def readline(self) -> bytes:
        signal.raise_signal(self._number)
        line: bytes = self._stream.readline()
        return line

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


_SEND = ClientServerConnection.send_command


@contextmanager
def java_calls(
    at: int | None = None, moment: SignalMoment = SignalMoment.AWAITED, number: signal.Signals = signal.SIGINT
) -> Iterator[JavaCalls]:
    """Count the calls; a signal arrives in call number `at` (from 1; None: in none)."""
    calls = JavaCalls(at, moment, number)

    def send(connection: ClientServerConnection, command: str) -> Any:
        return calls.send(connection, command)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClientServerConnection, "send_command", send)
        yield calls


def activate_session(spark: SparkSession) -> None:
    """Make the session active in this thread again. After an interruption py4j gives the thread another thread of
    Java."""
    java_classes(spark).SparkSession.setActiveSession(spark._jsparkSession)


@contextmanager
def interrupted_finalizer(at: int, number: signal.Signals) -> Iterator[list[int]]:
    """Send a signal when Java object number `at` is finalized; Python ignores errors of finalizers."""
    finalized: list[int] = []

    def collect(*args: Any) -> None:
        if threading.current_thread() is threading.main_thread():
            finalized.append(len(finalized) + 1)
            if finalized[-1] == at:
                signal.raise_signal(number)
        _COLLECT(*args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(java_gateway, "_garbage_collect_object", collect)
        yield finalized


_COLLECT = java_gateway._garbage_collect_object


@contextmanager
def restored_process_state() -> Iterator[None]:
    """Restore everything that the entry point of the command changes in its process."""
    kept = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM)}
    hook = sys.unraisablehook
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for number, handler in kept.items():
            signal.signal(number, handler)
