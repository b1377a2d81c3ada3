"""Everything with a socket, a clock or a thread: the proxy itself."""

import sys

if "rich" not in sys.modules:
    # structlog loads it where it is installed, for tracebacks in colours that are never shown here: 5 MB of memory.
    sys.modules["rich"] = None  # type: ignore[assignment]  # what the import system takes for a module that is not there
    import structlog  # noqa: F401

    del sys.modules["rich"]
