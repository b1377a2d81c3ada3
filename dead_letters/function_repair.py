"""Repairs records with a Python function that the person who runs the command provides."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from sluicegate.dead_letters.repairs import LetterContent, RepairFailed
from sluicegate.dead_letters.value_repairs import BadRepair

RepairFunction = Callable[[LetterContent], LetterContent | None]
"""Returns the changed record, or None to skip the record."""
_MODULE = "sluicegate_repair"


@dataclass(frozen=True, slots=True)
class FunctionRepair:
    """A repair that calls a function. `identity` identifies the content of its file, but not the modules it imports."""

    name: str
    identity: str
    function: RepairFunction

    def apply(self, content: LetterContent) -> LetterContent | None:
        try:
            found = self.function(content)
        except Exception as error:
            raise RepairFailed(f"{self.name} failed with {type(error).__name__}") from error
        if found is not None and not _is_content(found):
            raise RepairFailed(f"{self.name} did not return a LetterContent with bytes and an int64 timestamp")
        return found


def read_function(text: str) -> FunctionRepair:
    """Return the repair for a function given as FILE:FUNCTION. Executes the file. Raises BadRepair."""
    file, colon, name = text.rpartition(":")
    if not (file and colon and name):
        raise BadRepair(f"{text}: write FILE:FUNCTION, such as repairs.py:rename")
    path = Path(file)
    try:
        digest = sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise BadRepair(f"{file}: {error.strerror}") from error
    spec = spec_from_file_location(_MODULE, path)
    if spec is None or spec.loader is None:
        raise BadRepair(f"{file}: the name of a Python file ends with .py")
    module = sys.modules[_MODULE] = module_from_spec(spec)  # dataclasses look up their own module here
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise BadRepair(f"{file} cannot be imported: {type(error).__name__}: {error}") from error
    function = getattr(module, name, None)
    if not callable(function):
        raise BadRepair(f"{file} has no function {name}")
    return FunctionRepair(f"function {name}", f"function {name} {digest}", function)


def _is_content(found: Any) -> bool:
    if not isinstance(found, LetterContent) or not isinstance(found.topic, str):
        return False
    data = (found.key, found.value, *(value for _, value in found.headers))
    if not all(each is None or isinstance(each, bytes) for each in data):
        return False
    time = found.timestamp
    return all(isinstance(name, bytes) for name, _ in found.headers) and (
        time is None or (isinstance(time, int) and -(2**63) <= time < 2**63)
    )
