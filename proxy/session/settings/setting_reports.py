"""Counts and logs the changes of topic settings that clients request. Log lines name keys, and never values."""

from collections.abc import Iterable, Sequence
from itertools import islice

from sluicegate.protocol.api import Api
from sluicegate.protocol.errors import ERROR_NAMES
from sluicegate.proxy.session.client.client_text import client_text
from sluicegate.proxy.session.client.identity import ClientIdentity
from sluicegate.proxy.session.reports import SessionCounts, SessionLines
from sluicegate.proxy.session.settings.divided_request import MOST_REPORTED, RefusedItems
from sluicegate.proxy.session.settings.requested_values import is_ours
from sluicegate.proxy.session.topic_settings import Failures, SettingsChange


class SettingReports:
    """One session's reports. One line is logged for all topics in a request."""

    def __init__(self, identity: ClientIdentity, counts: SessionCounts, log: SessionLines) -> None:
        self._identity = identity
        self._counts = counts
        self._log = log

    def refused(self, api: Api, refused: RefusedItems) -> None:
        """Report the topics in a request that the proxy refuses."""
        for code, number in refused.codes.items():
            self._counts.request_errors[api.name, _name_of(code)] += number
        keys = {setting.name for item in refused.named for setting in item.settings if is_ours(setting)}
        errors = sorted(map(_name_of, refused.codes))
        topics = _some((item.name for item in refused.named), refused.codes.total())
        self._log.topic_settings_refused(self._identity, api.name, topics, _some(keys, len(keys)), ", ".join(errors))

    def stored(self, api: Api, changes: Sequence[SettingsChange], failures: Failures) -> None:
        """Report changes that were stored, and those that could not be stored."""
        changed = [change for change in changes if change.topic not in failures]
        if changed:
            self._counts.topic_setting_changes[api.name] += len(changed)
            keys = {key for change in islice(changed, MOST_REPORTED) for key in (*change.values, *change.removed)}
            topics = _some((change.topic for change in changed), len(changed))
            self._log.topic_settings_changed(self._identity, api.name, topics, _some(keys, len(keys)))
        if failures:
            reason = next(iter(failures.values())).reason
            self._log.topic_settings_not_stored(self._identity, api.name, _some(failures, len(failures)), reason)


def _name_of(code: int) -> str:
    return ERROR_NAMES.get(code, str(code))


def _some(names: Iterable[str], count: int) -> str:
    """Return the first names of `count`."""
    shown = [client_text(name) for name in islice(names, MOST_REPORTED)]
    return ", ".join(shown if count <= len(shown) else [*shown, f"and {count - len(shown)} more"])
