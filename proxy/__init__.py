"""Everything with a socket, a clock or a thread: the proxy itself."""

import sys

# What structlog loads where it is installed, for tracebacks in colours that are never shown here, and for threads of
# another kind than ours: 5 MB of memory and 1.
_WITHOUT = ("rich", "greenlet")
_left_out = [name for name in _WITHOUT if name not in sys.modules]
for _name in _left_out:
    sys.modules[_name] = None  # type: ignore[assignment]  # what the import system takes for a module that is not there
import structlog  # noqa: E402, F401

for _name in _left_out:
    del sys.modules[_name]
