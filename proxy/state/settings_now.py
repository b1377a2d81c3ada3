"""Reads the topic settings that the proxies share (`sluicegate.*`) once, for commands."""

from sluicegate.config.upstream import Upstream
from sluicegate.proxy.state.agreed_state import AgreedState, StateFull
from sluicegate.proxy.state.bounded_read import read_newest
from sluicegate.proxy.state.change import UnreadableChange, decode
from sluicegate.proxy.state.settings_table import SettingsTable

_MOST_RECORDS = 1_000_000


def read_settings_table(upstream: Upstream, state_topic: str) -> SettingsTable:
    """Return all topics' settings. Blocks for up to a few seconds. Raises TopicUnavailable."""
    state = AgreedState()
    for offset, record in enumerate(read_newest(upstream, state_topic, _MOST_RECORDS)):
        try:
            state = state.after(decode(record.value), offset)
        except (UnreadableChange, StateFull):
            continue  # the condition state_record_invalid reports it
    return state.settings
