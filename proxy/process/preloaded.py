"""What every worker needs, loaded once: workers are forked from a process that has imported this and nothing else.

That process has one thread and no event loop, so that forking it is safe whenever a worker is started again; what it
has loaded lies in memory once for all workers, as long as nobody writes to it. So the garbage collector, which would
write to each object, is told to leave it alone.
"""

import gc

import sluicegate.proxy.process.worker

__all__ = ["sluicegate"]

gc.collect()
gc.freeze()
