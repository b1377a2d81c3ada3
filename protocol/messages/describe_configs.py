"""DescribeConfigs (key 32), versions 0 to 4.

1: synonyms and the source of a value, no is_default any more. 2: same. 3: type and documentation. 4: flexible.
"""

from sluicegate.protocol.messages.schema import BOOL, INT8, INT16, INT32, STRING, ArrayOf, Field, MessageSchema, array

VERSIONS = range(0, 5)

REQUEST = MessageSchema(
    "DescribeConfigsRequest",
    VERSIONS,
    4,
    Field(
        "resources",
        array(
            Field("resource_type", INT8),
            Field("resource_name", STRING),
            Field("configuration_keys", ArrayOf(STRING), nullable_since=0),
        ),
    ),
    Field("include_synonyms", BOOL, since=1, default=False),
    Field("include_documentation", BOOL, since=3, default=False),
)

RESPONSE = MessageSchema(
    "DescribeConfigsResponse",
    VERSIONS,
    4,
    Field("throttle_time_ms", INT32),
    Field(
        "results",
        array(
            Field("error_code", INT16),
            Field("error_message", STRING, nullable_since=0),
            Field("resource_type", INT8),
            Field("resource_name", STRING),
            Field(
                "configs",
                array(
                    Field("name", STRING),
                    Field("value", STRING, nullable_since=0),
                    Field("read_only", BOOL),
                    Field("is_default", BOOL, until=0, default=False),
                    Field("config_source", INT8, since=1, default=-1),
                    Field("is_sensitive", BOOL),
                    Field(
                        "synonyms",
                        array(Field("name", STRING), Field("value", STRING, nullable_since=0), Field("source", INT8)),
                        since=1,
                        default=[],
                    ),
                    Field("config_type", INT8, since=3, default=0),
                    Field("documentation", STRING, since=3, nullable_since=0, default=None),
                ),
            ),
        ),
    ),
)
