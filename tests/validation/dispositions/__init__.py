"""Tests of `sluicegate.validation.dispositions`."""
