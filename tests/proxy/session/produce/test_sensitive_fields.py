"""A session never forwards a sensitive value in clear text, including for exempt clients and after internal errors."""

from typing import Any

import pytest

from sluicegate.config.files.yaml_source import read_yaml
from sluicegate.config.loading import load
from sluicegate.protocol.framing import frame_of
from sluicegate.protocol.headers import build_request_header
from sluicegate.proxy.session.produce.dependencies import OnInternalError
from sluicegate.validation.from_keys import file_policies_of
from sluicegate.validation.previous_times import PreviousTimes
from tests.proxy.session.playbook import NOW, Playbook, replace_produce_dependencies
from tests.wire.batches import Rec, batch
from tests.wire.raw_client import produce_body, topic_data

_FILE = """
upstream: {bootstrap: ["127.0.0.1:9"], topic_settings: false}
listen: {bootstrap: "127.0.0.1:9"}
exempt: [{client_id: mirror}]
topics: [{match: s, sensitive: [{name: mail, action: mask, fields: [mail]}]}]
"""
_SECRET = b'{"mail": "me@example.com"}'


def session_with_masking(**changes: Any) -> Playbook:
    play = Playbook(
        change=lambda dependencies: replace_produce_dependencies(dependencies, now_ms=lambda: NOW, **changes)
    )
    play.parts.rules.adopt(file_policies_of(load(read_yaml(_FILE, "f"), {}).config))
    return play


def send(play: Playbook, client: str) -> None:
    body = produce_body(9, [topic_data("s", (0, batch([Rec(NOW, b"k", _SECRET)])))])
    play.from_client(frame_of(build_request_header(0, 9, 7, client, 2), body))


@pytest.mark.parametrize("client", ["mirror", "other"])
def test_sensitive_fields_are_masked_for_exempt_clients_too(client: str) -> None:
    play = session_with_masking()

    send(play, client)
    play.loop.until(lambda: bool(play.broker.sent))

    assert b'{"mail": "***"}' in bytes(play.broker.sent)
    assert b"example.com" not in bytes(play.broker.sent)
    play.ends()
    assert play.parts.counters.batch_counts["sluicegate_masked_records"].total() == 1


class FailingValidation:
    """A validation with a bug."""

    previous = PreviousTimes()
    converts_legacy = False

    def must_convert(self, *_: object) -> bool:
        return self.converts_legacy

    def validate(self, *_: object) -> None:
        raise ValueError("a bug")


@pytest.mark.internal_error
def test_internal_error_closes_connection_despite_forward_setting_if_fields_masked() -> None:
    play = session_with_masking(on_internal_error=OnInternalError.FORWARD, scheduler=FailingValidation())

    send(play, "other")
    play.loop.until(lambda: play.client.aborted)

    assert not play.broker.sent
