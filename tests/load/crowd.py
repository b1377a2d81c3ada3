"""Crowds, in a process of their own. Told `{"kind": NAME, "port": ..., "size": {...}}` it prepares a crowd and says so;
told `go` it lets it come, and says what became of it.
"""

import asyncio
import gc
import ssl
from io import FileIO
from typing import Any

import uvloop

from tests.bounds.side_process import fork_for_each, say
from tests.load.client import Where
from tests.load.kinds import KINDS, Crowd, Size
from tests.load.waits import waits_of

_NICENESS = 5


async def let_come(settings: dict[str, Any], told: FileIO) -> None:
    """One crowd, from beginning to end."""
    size = Size(**settings["size"])
    trusting = ssl.create_default_context(cafile=ca_file) if (ca_file := settings["ca_file"]) else None

    async def begins() -> Where:
        gc.freeze()
        say()
        told.readline()
        address = settings["host"], settings["port"]
        return Where(address, asyncio.get_running_loop().time() + size.seconds, trusting)

    crowd = Crowd(size, begins)
    await KINDS[settings["kind"]](crowd)
    became = crowd.told
    say(
        came=len(became.came),
        answers=became.answers,
        closed=became.closed,
        unserved=len(became.failures),
        why=sorted(set(became.failures))[:3],
        waits=waits_of(became.seconds),
        remark=became.remark,
    )


if __name__ == "__main__":
    fork_for_each(lambda settings, told: uvloop.run(let_come(settings, told)), _NICENESS)
