"""Imports the modules that every worker needs once.

Workers are forked from a process that has imported only this module. That process has one thread and no event loop, so
that forking is safe at each restart of a worker. Its objects are frozen, because the garbage collector would write to
each of them, and workers would no longer share their memory.
"""

import gc

import sluicegate.proxy.workers.worker

__all__ = ["sluicegate"]

gc.collect()
gc.freeze()
