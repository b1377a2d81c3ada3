"""Tests `sluicegate.validation.sensitive`."""
