"""`sluicegate-spark watch`: keeps profiles and violations up to date, and reports when a producer's invalid
timestamps begin.
"""
