"""Requests one broker's own settings (DescribeConfigs). Only `doctor` uses this module."""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

from sluicegate.protocol.api import ApiKey
from sluicegate.protocol.errors import error_name
from sluicegate.protocol.messages.cluster import DESCRIBE_CONFIGS_REQUEST, DESCRIBE_CONFIGS_RESPONSE
from sluicegate.proxy.cluster.broker_client import BrokerClient, parse_response
from sluicegate.proxy.cluster.response_bodies import BrokerResponse, read_response

_BROKER_RESOURCE = 4
_MAX_WORDS = 300


BrokerSettings = Mapping[str, str | None]
"""Settings by name. The values of secret settings are None."""


class SettingsHidden(NamedTuple):
    """The broker does not return its settings."""

    reason: str


async def ask_for_settings(node_id: int, client: BrokerClient) -> BrokerSettings | SettingsHidden:
    """Return the connected broker's settings, including those of each listener.

    Raises a connection's errors, and SenderError for an invalid response.
    """
    version = client.version_of(ApiKey.DESCRIBE_CONFIGS)
    if version < 0:
        return SettingsHidden("the broker does not support DescribeConfigs")
    resource = {"resource_type": _BROKER_RESOURCE, "resource_name": str(node_id), "configuration_keys": None}
    body = DESCRIBE_CONFIGS_REQUEST.build({"resources": [resource]}, version)
    response = await client.call(ApiKey.DESCRIBE_CONFIGS, version, body)
    return await parse_response(partial(_read, str(node_id)), response, version)


def _read(name: str, response: BrokerResponse, version: int) -> BrokerSettings | SettingsHidden:
    """Parse a response. Raises MalformedMessage."""
    for result in read_response(DESCRIBE_CONFIGS_RESPONSE, response, version)["results"] or ():
        if result["resource_type"] == _BROKER_RESOURCE and result["resource_name"] == name:
            if result["error_code"]:
                reason = result["error_message"] or "the broker gives no reason"
                return SettingsHidden(f"{error_name(result['error_code'])}, {reason}"[:_MAX_WORDS])
            return {entry["name"]: entry["value"] for entry in result["configs"] or ()}
    return SettingsHidden("missing in the response")
