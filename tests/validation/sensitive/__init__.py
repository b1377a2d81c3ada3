"""Tests of `sluicegate.validation.sensitive`."""
