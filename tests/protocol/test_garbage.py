"""Every hand-written reader returns a value or raises MalformedMessage for any bytes, compiled or not."""

import random
from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sluicegate.protocol.api import APIS, ApiHandling
from sluicegate.protocol.before_login import login_response_in, mechanism_in, software_in, token_in
from sluicegate.protocol.errors import SenderError
from sluicegate.protocol.fetch_response import fetched_partition
from sluicegate.protocol.headers import parse_request_header, response_body_at, skip_tagged_fields
from sluicegate.protocol.produce_request import walk_produce_request
from sluicegate.protocol.produce_response import tail_with_endpoints, walk_produce_response
from sluicegate.protocol.response_patches import with_addresses
from sluicegate.protocol.response_walks import addresses_in, endpoints_in_tag, topics_in
from sluicegate.protocol.walk import tagged_fields
from tests.oracle.definitions import RandomMessage
from tests.protocol.messages.test_against_kafka import message_schemas, release_of

Reader = Callable[[bytearray, int], object]
SCHEMAS = dict(message_schemas())


def no_address(_node_id: int, _host: str, _port: int) -> tuple[str, int] | None:
    return None


def reader_of_addresses(key: int) -> Reader:
    return lambda data, version: addresses_in(key, version, data, 0)


READERS: dict[str, tuple[Reader, ...]] = {
    "ProduceRequest": (lambda data, version: walk_produce_request(data, version, 0, 1000),),
    "ProduceResponse": (
        lambda data, version: walk_produce_response(data, version, 0, 1000),
        lambda data, version: tail_with_endpoints(data, version, 0),
        lambda data, version: with_addresses(bytes(data), no_address),
    ),
    "ApiVersionsRequest": (lambda data, version: software_in(data, version, 0),),
    "SaslHandshakeRequest": (lambda data, version: mechanism_in(data, version, 0),),
    "SaslAuthenticateRequest": (lambda data, version: token_in(data, version, 0),),
    "SaslAuthenticateResponse": (lambda data, version: login_response_in(data, version, 0),),
    "FetchResponse": (lambda data, _version: fetched_partition(memoryview(data)),),
}
REWRITTEN = {f"{api.name}Response": key for key, api in APIS.items() if api.handling is ApiHandling.REWRITE}
READERS |= {name: (reader_of_addresses(key),) for name, key in REWRITTEN.items() if name in SCHEMAS}
READERS["MetadataResponse"] += (lambda data, version: topics_in(data, version, 0),)
# The functions that parse any bytes, including a response without a schema.
OTHERS: tuple[Reader, ...] = (
    *(reader_of_addresses(key) for name, key in REWRITTEN.items() if name not in SCHEMAS),
    lambda data, version: parse_request_header(data, version % 3),
    lambda data, version: response_body_at(data, version % 2),
    lambda data, _version: skip_tagged_fields(data, 0),
    lambda data, _version: tagged_fields(data, 0),
    lambda data, _version: endpoints_in_tag(data),
    lambda data, _version: with_addresses(bytes(data), no_address),
)
CASES = [(name, version) for name in READERS for version in SCHEMAS[name].versions]


@pytest.mark.parametrize(("name", "version"), CASES)
def test_hand_written_readers_read_or_reject_mutated_messages(name: str, version: int) -> None:
    chance = random.Random(f"{name} {version}")
    for seed in range(4):
        whole = SCHEMAS[name].build(RandomMessage(release_of(name, version), name, version, seed).ours, version)
        for _ in range(200):
            mutant = bytearray(whole)
            for _ in range(chance.randint(1, 4)):
                if mutant:
                    odd = (0, 1, 0x7F, 0x80, 0xFF, chance.randrange(256))
                    mutant[chance.randrange(len(mutant))] = chance.choice(odd)
            del mutant[chance.choice((len(mutant), chance.randint(0, len(mutant)))) :]
            for read in READERS[name]:
                with suppress(SenderError):
                    read(mutant, version)


@given(st.sampled_from(CASES), st.binary(max_size=200))
def test_hand_written_readers_read_or_reject_random_bytes(case: tuple[str, int], garbage: bytes) -> None:
    name, version = case
    for read in (*READERS[name], *OTHERS):
        with suppress(SenderError):
            read(bytearray(garbage), version)


@given(st.sampled_from(CASES), st.integers(0, 10), st.sampled_from((b"\xff", b"\x80", b"\x7f", b"\0", b"\x01")))
def test_hand_written_readers_read_or_reject_one_repeated_byte(case: tuple[str, int], digits: int, byte: bytes) -> None:
    name, version = case
    for read in (*READERS[name], *OTHERS):
        with suppress(SenderError):
            read(bytearray(byte * 2**digits), version)
