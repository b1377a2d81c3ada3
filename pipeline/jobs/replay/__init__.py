"""Writes dead letters back to their topics."""

from sluicegate.pipeline.jobs.replay.dead_letter import DeadLetter, ReplayRecord

__all__ = ["DeadLetter", "ReplayRecord"]
