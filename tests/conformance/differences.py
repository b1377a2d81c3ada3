"""The only ways in which an answer through sluicegate may differ from a broker's own, each with its reason.

What is not here must be equal.
"""

NULL_RECORDS = (
    "null records: a broker never answers such a request (4.3.1 and 3.9.1, v3 and later: the client waits until its "
    "timeout), sluicegate answers INVALID_RECORD for that partition"
)

ALLOWED = (NULL_RECORDS,)
