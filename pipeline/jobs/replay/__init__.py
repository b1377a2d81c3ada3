"""Writes dead letters back to their topics."""

from sluicegate.pipeline.jobs.replay.dead_letter import DeadLetter, Record

__all__ = ["DeadLetter", "Record"]
