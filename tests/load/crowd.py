"""Runs crowds in a separate process.

On `{"kind": NAME, "port": ..., "size": {...}}`, the process prepares a crowd and reports this; on `go`, the crowd
connects, and the process reports the outcome.
"""

import asyncio
import gc
import ssl
from io import FileIO
from typing import Any

import uvloop

from tests.bounds.side_process import fork_for_each, report
from tests.load.client import LoadTarget
from tests.load.kinds import KINDS, Crowd, CrowdSize
from tests.load.waits import waits_of

_NICENESS = 5


async def run_crowd(settings: dict[str, Any], commands: FileIO) -> None:
    """Run one crowd from start to end."""
    size = CrowdSize(**settings["size"])
    trusting = ssl.create_default_context(cafile=ca_file) if (ca_file := settings["ca_file"]) else None

    async def wait_for_start() -> LoadTarget:
        gc.freeze()
        report()
        commands.readline()
        address = settings["host"], settings["port"]
        return LoadTarget(address, asyncio.get_running_loop().time() + size.seconds, trusting)

    crowd = Crowd(size, wait_for_start)
    await KINDS[settings["kind"]](crowd)
    outcome = crowd.result
    report(
        arrived=len(outcome.arrived),
        responses=outcome.responses,
        closed=outcome.closed,
        unserved=len(outcome.failures),
        why=sorted(set(outcome.failures))[:3],
        waits=waits_of(outcome.seconds),
        remark=outcome.remark,
    )


if __name__ == "__main__":
    fork_for_each(lambda settings, commands: uvloop.run(run_crowd(settings, commands)), _NICENESS)
