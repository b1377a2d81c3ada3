"""`GET /api/dead-letters`, which returns the topics of `admin.dead_letters`, or one topic's groups with `topic=NAME`.

Another process reads the letters, one topic at a time. If that takes longer than a request may last, the response is
`reading`, and the client asks again.
"""

import json
import pickle
import shlex
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl

from sluicegate.config.loading import Loaded
from sluicegate.proxy.webui.responses import HttpResponse, json_response, text_response
from sluicegate.proxy.writing.topic_writer import ClientMissing, check_client

_WAIT_SECONDS = 4.0  # the admin endpoint ends each request within 10 s
_KEPT_SECONDS = 5.0
_PROCESS_SECONDS = 30
_START_SECONDS = 10.0
_ADVICE = "allow the proxy's login READ and DESCRIBE on the topic; sluicegate doctor examines the brokers"
_USAGE = "expected /api/dead-letters, or /api/dead-letters?topic=NAME with a topic of admin.dead_letters"
_BEGIN = "import sys; sys.path = {path!r}; from sluicegate.proxy.admin.letter_process import main; main()"

AskProcess = Callable[[Loaded, str | None], list[str]]
"""Returns the lines that the process wrote for a topic, or for all topics."""


class _Reading:
    """One run of the process. `lines` is None until the process ends."""

    def __init__(self, ask: AskProcess, loaded: Loaded, topic: str | None) -> None:
        self.topic = topic
        self.lines: list[str] | None = None
        self.ended_at = 0.0
        self.end = threading.Event()
        threading.Thread(target=self._run, args=(ask, loaded), name="dead letters", daemon=True).start()

    def _run(self, ask: AskProcess, loaded: Loaded) -> None:
        lines: list[str] = []
        try:
            lines = ask(loaded, self.topic)
        finally:
            self.ended_at = time.monotonic()
            self.lines = lines
            self.end.set()

    @property
    def is_old(self) -> bool:
        return self.lines is not None and time.monotonic() - self.ended_at > _KEPT_SECONDS


class LettersApi:
    """Returns dead letters. Thread-safe. `loaded` returns the configuration in force.

    A result is kept for 5 s, so several viewers of a topic share it.
    """

    def __init__(
        self, loaded: Callable[[], Loaded], ask: AskProcess | None = None, wait_seconds: float = _WAIT_SECONDS
    ) -> None:
        self._loaded = loaded
        self._ask = ask or ask_process
        self._wait_seconds = wait_seconds
        self._changing = threading.Lock()
        self._reading: _Reading | None = None

    def find(self, query: str) -> HttpResponse:
        """Return the topics, or a topic's groups.

        Blocks for up to a few seconds. If the letters cannot be read, the result is null and `problem` gives the
        reason. While the process runs, the result is null and `reading` is true.
        """
        loaded = self._loaded()
        topics = loaded.config.admin.dead_letters
        given = dict(parse_qsl(query, keep_blank_values=True))
        topic = given.pop("topic", None)
        if given or (topic is not None and topic not in topics):
            return text_response(400, _USAGE)
        if not topics:
            return _unknown("admin.dead_letters names no topic", "name the topics to show, and restart the proxy")
        try:
            check_client("admin.dead_letters")
        except ClientMissing as error:
            return _unknown(str(error), "install the package, and restart the proxy")
        lines = self._lines(loaded, topic)
        if lines is None:
            return json_response({"topics": None, "groups": None, "reading": True})
        if not lines:
            return _unknown("the dead letters could not be read in time", _ADVICE)
        found: dict[str, Any] = json.loads(lines[-1])
        if "problem" in found:
            return _unknown(str(found["problem"]), _ADVICE)
        return json_response(found if topic is None else _with_commands(found, topic, loaded))

    def _lines(self, loaded: Loaded, topic: str | None) -> list[str] | None:
        """Return the lines that the process wrote, or None while it still runs, for this topic or another one."""
        with self._changing:
            reading = self._reading
            if reading is None or reading.is_old or (reading.lines is not None and reading.topic != topic):
                reading = self._reading = _Reading(self._ask, loaded, topic)
        reading.end.wait(self._wait_seconds)
        return reading.lines if reading.topic == topic else None


def _with_commands(found: dict[str, Any], topic: str, loaded: Loaded) -> dict[str, Any]:
    """Add to each group the command that prints the plan of its redrive."""
    begins = ["sluicegate", "dead-letters", "redrive", topic, "--config", loaded.source.name]
    groups = [{**group, "command": shlex.join([*begins, "--group", group["id"]])} for group in found["groups"]]
    return {**found, "groups": groups}


def _unknown(problem: str, advice: str) -> HttpResponse:
    return json_response({"topics": None, "groups": None, "problem": problem, "advice": advice})


def ask_process(loaded: Loaded, topic: str | None, seconds: int = _PROCESS_SECONDS) -> list[str]:
    """Run the process for at most `seconds` after it has started, and return the complete lines that it wrote."""
    from sluicegate.proxy.admin.letter_process import LetterQuestion  # noqa: PLC0415  # few proxies need librdkafka

    question = pickle.dumps(LetterQuestion(loaded, topic, seconds))
    command = [sys.executable, "-c", _BEGIN.format(path=sys.path)]
    try:
        done = subprocess.run(  # noqa: S603  # the command is this program
            command,
            input=question,
            capture_output=True,
            timeout=seconds + _START_SECONDS,
            check=False,
            process_group=0,
        )
        written = done.stdout
    except subprocess.TimeoutExpired as error:
        written = error.stdout or b""
    return [line.decode() for line in written.splitlines(keepends=True) if line.endswith(b"\n")]
