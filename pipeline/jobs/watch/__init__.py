"""Implements `sluicegate-spark watch`, which keeps profiles and violations up to date.

The job reports when a producer's invalid timestamps begin.
"""
