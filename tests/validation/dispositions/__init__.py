"""Tests `sluicegate.validation.dispositions`."""
