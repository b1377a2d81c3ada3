"""The only ways in which an answer through sluicegate may differ from a broker's own, each with its reason.

What is not here must be equal; the README shows this list.
"""

NULL_RECORDS = (
    "Null records (a field that no client leaves null): a broker fails over them without ever answering, so that the "
    "client waits for its timeout and its connection is stuck; sluicegate answers INVALID_RECORD for that partition."
)
