"""Dead letters of any writer: their formats, groups and contents. No Spark, and nothing of the proxy.

`Cluster(settings)` connects, `read_records` reads a topic, `read_letter` returns the letter of a record, and `Groups`
counts letters by their cause.
"""

from sluicegate.dead_letters.formats import read_letter
from sluicegate.dead_letters.groups import Group, Groups
from sluicegate.dead_letters.letter import Headers, Letter, LetterFormat, Obstacle, StoredRecord
from sluicegate.dead_letters.repairs import LetterContent

__all__ = [
    "Group",
    "Groups",
    "Headers",
    "Letter",
    "LetterContent",
    "LetterFormat",
    "Obstacle",
    "StoredRecord",
    "read_letter",
]
