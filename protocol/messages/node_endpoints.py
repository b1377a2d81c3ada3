"""The list of broker addresses that Produce v10+, Fetch v16+ and share answers carry (KIP-951)."""

from sluicegate.protocol.messages.schema import INT32, STRING, Field, array, struct

NODE_ENDPOINTS = array(
    Field("node_id", INT32),
    Field("host", STRING),
    Field("port", INT32),
    Field("rack", STRING, nullable_since=0, default=None),
)

LEADER_ID_AND_EPOCH = struct(Field("leader_id", INT32, default=-1), Field("leader_epoch", INT32, default=-1))
NO_LEADER = {"leader_id": -1, "leader_epoch": -1}
