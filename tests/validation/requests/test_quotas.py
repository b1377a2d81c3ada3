"""A quota applies to the right clients or topics, by client id, principal or topic name."""

import pytest

from sluicegate.config.quotas import Quota as Keys
from sluicegate.config.topics import TopicKeys
from sluicegate.validation.from_keys import compile_policies
from sluicegate.validation.requests.request_rule import quotas_of
from sluicegate.validation.rulebook import Rulebook
from sluicegate.validation.rules.rule import Client

ETL = Client("10.0.0.1:5", "etl-1", None, None, "User:batch")


@pytest.mark.parametrize(
    ("whom", "names"),
    [
        ({"client_id": "etl-*"}, ("etl-1",)),
        ({"principal": "User:*"}, ("User:batch",)),
        ({"principal": "User:*", "client_id": "*"}, ("User:batch", "etl-1")),
        ({"principal": "User:*", "client_id": "other"}, None),
        ({"client_id": "etl"}, None),
        ({"topic": "*"}, None),
    ],
)
def test_quota_counts_clients_that_match_its_patterns(whom: dict[str, str], names: tuple[str, ...] | None) -> None:
    (quota,) = quotas_of([Keys(name="q", requests_per_second=1, **whom)])

    assert quota.counted_names(ETL) == names


@pytest.mark.parametrize("client_id", [None, ""])
def test_missing_client_id_matches_like_an_empty_one(client_id: str | None) -> None:
    nameless = Client("10.0.0.1:5", client_id)
    every, some = quotas_of([Keys(name=name, requests_per_second=1, client_id=name) for name in ("*", "etl*")])

    assert (every.counted_names(nameless), some.counted_names(nameless)) == (("",), None)


def test_client_without_a_login_is_anonymous() -> None:
    patterns = ("*", "User:ANONYMOUS", "User:etl")
    quotas = quotas_of([Keys(name=pattern, requests_per_second=1, principal=pattern) for pattern in patterns])

    found = [quota.counted_names(Client("10.0.0.1:5")) for quota in quotas]

    assert found == [("User:ANONYMOUS",), ("User:ANONYMOUS",), None]


def test_unverified_principals_share_one_quota_and_match_only_catch_all_patterns() -> None:
    patterns = ("*", "User:*", "User:ANONYMOUS", "User:unverified", "unverified")
    quotas = quotas_of([Keys(name=pattern, requests_per_second=1, principal=pattern) for pattern in patterns])

    found = [quota.counted_names(Client("10.0.0.1:5", is_unverified=True)) for quota in quotas]

    assert found == [("an unverified principal",), ("an unverified principal",), None, None, None]


def test_first_matching_topic_quota_applies_and_requires_the_slow_path() -> None:
    quotas = [Keys(name=name, topic=topic, requests_per_second=1) for name, topic in (("a", "x*"), ("b", "*y"))]
    rulebook = Rulebook(compile_policies(TopicKeys(), quotas=quotas))

    found = {topic: rulebook.policy_of(topic).quota for topic in ("xy", "zy", "z")}

    assert {topic: quota and quota.name for topic, quota in found.items()} == {"xy": "a", "zy": "b", "z": None}
    assert (rulebook.policy_of("xy").ordinary, rulebook.policy_of("z").ordinary) == (None, rulebook.policy_of("z"))
