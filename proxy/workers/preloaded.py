"""Imports what every worker needs, once: workers are forked from a process that has imported only this.

That process has one thread and no event loop, so that forking it is safe whenever a worker is restarted. The garbage
collector leaves its objects alone, because it would write to each, and workers would no longer share their memory.
"""

import gc

import sluicegate.proxy.workers.worker

__all__ = ["sluicegate"]

gc.collect()
gc.freeze()
