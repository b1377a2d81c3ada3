"""Dead letters back to where they belong."""

from sluicegate.pipeline.jobs.replay.dead_letter import DeadLetter, Record

__all__ = ["DeadLetter", "Record"]
