"""Runs a registry that stores schemas by their ids and responds at once, so that tests only measure the proxy."""

import json
from collections.abc import Callable, Mapping
from socket import socket
from typing import Any

from tests.registry.stand_in import StandIn, http_response

_PREFIX = b"GET /schemas/ids/"
TextOf = Callable[[int], tuple[str, str] | None]
"""Returns the language and the text of the schema with an id, or None if there is no such schema."""


def registry_of(text_of: TextOf, rule_sets: Mapping[int, Any] | None = None) -> StandIn:
    """Return the registry as a context manager. `rule_sets`: the rule sets of schemas by id."""

    def respond_with_schema(client: socket, head: bytes) -> bool:
        schema_id = head.removeprefix(_PREFIX).split(b" ", 1)[0]
        found = text_of(int(schema_id)) if head.startswith(_PREFIX) and schema_id.isdigit() else None
        if found is None:
            client.sendall(http_response("404 Not Found", b'{"error_code": 40403}'))
        else:
            language, text = found
            body = {"schemaType": language, "schema": text, "ruleSet": (rule_sets or {}).get(int(schema_id))}
            client.sendall(http_response("200 OK", json.dumps(body).encode()))
        return True

    return StandIn(respond_with_schema)
