"""Where violation events go by the configuration: a file, a topic, both or nowhere."""

from errno import EROFS
from pathlib import Path

from sluicegate.config.model import Config, Violations
from sluicegate.proxy.reporting.events.violation_writer import SeveralSinks, ViolationFile, ViolationSink
from sluicegate.proxy.reporting.metrics.counters import Tally
from sluicegate.proxy.server.cannot_start import CannotStart
from sluicegate.proxy.writing.topic_writer import ClientMissing, check_client
from sluicegate.proxy.writing.violation_topic import ViolationTopic


def open_violations(config: Config, tally: Tally) -> ViolationSink | None:
    """What takes the events; None: nobody wants them. Raises CannotStart."""
    keys = config.violations
    sinks: list[ViolationSink] = []
    if keys.topic is not None:
        check_may_write("violations.topic")
    if keys.file is not None:
        sinks.append(_open_file(Path(keys.file), keys, tally))
    if keys.topic is not None:
        sinks.append(ViolationTopic(keys.topic, config.upstream, keys.queue_size, tally))
    return SeveralSinks(sinks) if len(sinks) > 1 else next(iter(sinks), None)


def check_may_write(key: str) -> None:
    """Whether what writes to topics is installed, which the key `key` needs. Raises CannotStart."""
    try:
        check_client(key)
    except ClientMissing as error:
        raise CannotStart(str(error)) from None


def _open_file(path: Path, keys: Violations, tally: Tally) -> ViolationFile:
    try:
        return ViolationFile(path, keys.queue_size, keys.max_file_bytes, tally)
    except OSError as error:
        advice = "; give its folder a volume, or leave violations.file out" if error.errno == EROFS else ""
        raise CannotStart(f"violations.file {path.absolute()} cannot be written: {error.strerror}{advice}") from error
