"""A rule in the rules process sees the client that a rule in the proxy sees."""

from sluicegate.proxy.rules_process.messages import fields_of, record_of
from sluicegate.validation.rules.rule import Client, RuledRecord


def test_every_client_field_reaches_the_rules_process() -> None:
    client = Client("10.0.0.1:5", "billing", "java", "4.3.1", "User:a", is_unverified=True)
    record = RuledRecord("t", 3, 0, 0, None, None, (), client, -1)

    arrived = record_of(fields_of(record)).client

    assert {name: getattr(arrived, name) for name in Client.__slots__} == {
        name: getattr(client, name) for name in Client.__slots__
    }
