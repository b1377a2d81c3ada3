"""Iterates over, groups, validates and redrives dead letters, whoever wrote them. Does not need Spark.

    from sluicegate.dead_letters import Cluster, RedriveJob, RedriveRequest, group_letters, letters_of
    from sluicegate.proxy.reload.letter_policies import read_policies

`letters_of` iterates over letters, `group_letters` groups them, a `LetterValidator` (from `read_policies`) validates
them, and a `RedriveJob` redrives them. See docs/dead-letters.md for an example. Everything else in the package is
internal.
"""

from sluicegate.dead_letters.cluster import Cluster, ClusterUnavailable, Range
from sluicegate.dead_letters.formats import read_letter
from sluicegate.dead_letters.function_repair import FunctionRepair, read_function
from sluicegate.dead_letters.groups import Group, LetterGroups
from sluicegate.dead_letters.iterating import group_letters, letters_of
from sluicegate.dead_letters.letter import Headers, Letter, LetterFormat, Obstacle, StoredRecord
from sluicegate.dead_letters.redrive_job import DifferentClusters, Plan, PlanChanged, RedriveJob, RedriveRequest
from sluicegate.dead_letters.redriving import Pace, Redriven
from sluicegate.dead_letters.repairs import LetterContent, LetterRepair, RepairFailed
from sluicegate.dead_letters.selection import LetterSelection
from sluicegate.dead_letters.transactional_writer import Fenced
from sluicegate.dead_letters.value_repairs import BadRepair, JsonPatch, SchemaId, read_patch
from sluicegate.dead_letters.verdicts import LetterValidator, LetterVerdict

__all__ = [
    "BadRepair",
    "Cluster",
    "ClusterUnavailable",
    "DifferentClusters",
    "Fenced",
    "FunctionRepair",
    "Group",
    "Headers",
    "JsonPatch",
    "Letter",
    "LetterContent",
    "LetterFormat",
    "LetterGroups",
    "LetterRepair",
    "LetterSelection",
    "LetterValidator",
    "LetterVerdict",
    "Obstacle",
    "Pace",
    "Plan",
    "PlanChanged",
    "Range",
    "RedriveJob",
    "RedriveRequest",
    "Redriven",
    "RepairFailed",
    "SchemaId",
    "StoredRecord",
    "group_letters",
    "letters_of",
    "read_function",
    "read_letter",
    "read_patch",
]
