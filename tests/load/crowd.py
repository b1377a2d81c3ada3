"""Crowds, in a process of their own. Told `{"kind": NAME, "port": ..., "size": {...}}` it prepares a crowd and says so;
told `go` it lets it come, and says what became of it.
"""

import asyncio
import gc
import json
import os
import sys
import traceback
from io import FileIO
from typing import Any

import uvloop

from tests.bounds.side_process import say, take_many_descriptors
from tests.load.client import Where
from tests.load.kinds import KINDS, Crowd, Size
from tests.load.waits import waits_of

_NICENESS = 5


async def let_come(settings: dict[str, Any], told: FileIO) -> None:
    """One crowd, from beginning to end."""
    size = Size(**settings["size"])

    async def begins() -> Where:
        gc.freeze()
        say()
        told.readline()
        address = settings["host"], settings["port"]
        return Where(address, asyncio.get_running_loop().time() + size.seconds)

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


def main() -> None:
    os.nice(_NICENESS)
    take_many_descriptors()
    say()
    told = FileIO(0)  # unbuffered, as both a crowd and this loop read it
    while settings := told.readline():
        child = os.fork()  # whatever a crowd has taken goes with it
        if child == 0:
            try:
                uvloop.run(let_come(json.loads(settings), told))
            except BaseException:
                say(failed=traceback.format_exc())
            finally:
                sys.stdout.flush()
                os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    main()
