"""Imports the modules that every worker needs, once for all workers.

Workers are forked from a process that has imported only this module. That process has one thread and no event loop, so
it is safe to fork whenever a worker restarts. Its objects are frozen. Otherwise the garbage collector would write to
each of them, and workers would no longer share their memory.
"""

import gc

import sluicegate.proxy.workers.worker

__all__ = ["sluicegate"]

gc.collect()
gc.freeze()
