"""Changes of topic settings are logged with client, topics and keys, and never with values."""

from typing import Any

from structlog.testing import capture_logs

from sluicegate.protocol.api import ApiKey
from sluicegate.proxy.session.topic_settings import StoreFailure
from tests.proxy.session.settings.scene import MODE, OWNER, Scene
from tests.proxy.session.settings.test_altering import DELETE, SET, alteration, resource, results

SECRET = "a-value-that-nobody-logs"


def lines_of(*resources: dict[str, Any], reason: str | None = None) -> list[dict[str, Any]]:
    """Return the log lines of one request, whose topics the broker accepts."""
    scene = Scene(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1)
    scene.stored.failure = None if reason is None else StoreFailure(reason)
    accepted = results(*((each["resource_name"], 0, None) for each in resources))
    with capture_logs() as lines:
        asked = scene.sends(alteration(*resources))
        while asked is not None:
            asked = scene.broker_validates(accepted)
        scene.play.parts.log.flush()
    assert SECRET not in str(lines)
    return [dict(line) for line in lines]


def test_an_accepted_change_is_logged_with_its_keys() -> None:
    (line,) = lines_of(resource("orders", (OWNER, SET, SECRET), (MODE, DELETE, None)))

    assert line == {
        "event": "topic settings changed",
        "log_level": "info",
        "client_address": "192.0.2.1:5",
        "client_id": "terraform",
        "api": "IncrementalAlterConfigs",
        "topic": "orders",
        "keys": line["keys"],
    }
    assert set(line["keys"].split(", ")) == {OWNER, MODE}


def test_rejected_change_is_logged_with_its_error() -> None:
    (line,) = lines_of(resource("orders", (OWNER, SET, SECRET), (MODE, SET, "bad")))

    assert (line["event"], line["log_level"]) == ("topic settings refused", "warning")
    assert (line["topic"], line["error"]) == ("orders", "INVALID_CONFIG")
    assert set(line["keys"].split(", ")) == {OWNER, MODE}


def test_a_change_that_was_not_stored_is_logged_with_the_reason() -> None:
    (line,) = lines_of(resource("orders", (OWNER, SET, SECRET)), reason="no broker responds")

    assert (line["event"], line["reason"]) == ("topic settings not stored", "no broker responds")


def test_change_of_many_topics_with_hostile_names_logs_one_short_line() -> None:
    many = [resource(f"t{number}", (OWNER, SET, SECRET)) for number in range(5_000)]
    (line,) = lines_of(*many)

    assert line["topic"].startswith("t0, t1, t2")
    assert line["topic"].endswith("and 4990 more")

    hostile = [(f"sluicegate.\n{'x' * 1_000}{number}", SET, SECRET) for number in range(2_000)]
    (line,) = lines_of(resource("orders", *hostile))
    assert len(str(line)) < 1_000
    assert "\n" not in line["keys"]
