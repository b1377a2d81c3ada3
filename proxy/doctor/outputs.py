"""Checks that the proxy can write violation events and dead letters. If it cannot, it does not start."""

import os
from collections.abc import Iterator
from pathlib import Path

from sluicegate.config.model import Config
from sluicegate.proxy.doctor.check_result import CheckResult, Level
from sluicegate.proxy.doctor.checks import MachineCheck
from sluicegate.proxy.writing.topic_writer import ClientMissing, check_client

_FILE = "violations.file"
_VOLUME = "mount a writable volume there, or correct violations.file"


def check(config: Config) -> Iterator[CheckResult]:
    """Yield a result for `violations.file`, and one for each key whose package is missing."""
    file = config.violations.file
    if file is not None:
        path = Path(file).absolute()
        reason = _why_not_writable(path)
        if reason is None:
            yield CheckResult(_FILE, Level.OK, f"{path} is writable")
        else:
            yield CheckResult(_FILE, Level.FAILURE, f"{path} cannot be written: {reason}", _VOLUME)
    keys = ["violations.topic"] if config.violations.topic is not None else []
    keys += ["quarantine"] if any(topic.quarantine is not None for topic in config.topics) else []
    for key in keys:
        try:
            check_client(key)
        except ClientMissing as error:
            found, _, advice = str(error).partition(": ")
            yield CheckResult(key, Level.FAILURE, found, advice)


def _why_not_writable(path: Path) -> str | None:
    """Return why the file can be neither appended to nor created, or None if it is writable. Creates nothing."""
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_CLOEXEC))
    except FileNotFoundError:
        folder = path.parent
        if not folder.is_dir():
            return f"the folder {folder} does not exist"
        return None if os.access(folder, os.W_OK | os.X_OK) else f"the folder {folder} is not writable"
    except OSError as error:
        return error.strerror or str(error)
    return None


CHECK = MachineCheck(50, check)
