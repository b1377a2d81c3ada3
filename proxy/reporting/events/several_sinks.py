"""Violation events that go to more than one place."""

import threading
from collections.abc import Sequence

from sluicegate.proxy.reporting.events.violation_event import Event
from sluicegate.proxy.reporting.events.violation_writer import ViolationSink


class SeveralSinks:
    """Each gets every event; none waits for another."""

    def __init__(self, sinks: Sequence[ViolationSink]) -> None:
        self._sinks = sinks

    def write(self, event: Event) -> None:
        """Give it to each."""
        for sink in self._sinks:
            sink.write(event)

    def close(self) -> None:
        """End them all at once, so that together they take no longer than the slowest."""
        threads = [threading.Thread(target=sink.close, name="violations end") for sink in self._sinks]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
