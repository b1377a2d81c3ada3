"""sluicegate where every instruction takes some fifty times as long (callgrind): a turn of its event loop is as long.

Run: python -m bench.slowed_proxy ARGUMENTS, those of sluicegate.
"""

from functools import partial

import sluicegate.proxy.server.assembly
from sluicegate.proxy.cli.main import main
from sluicegate.proxy.session.pacing import LoopLateness

_HALF_SECONDS = 0.05

if __name__ == "__main__":
    sluicegate.proxy.server.assembly.LoopLateness = partial(LoopLateness, half_seconds=_HALF_SECONDS)  # type: ignore[assignment,misc]  # a partial instead of the class
    main()
