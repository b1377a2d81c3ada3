"""Letters are read from writers that only the configuration describes (`dead_letter_topics`)."""

import struct

import pytest

from sluicegate.dead_letters import Headers, Letter, LetterFormat
from sluicegate.dead_letters.formats import LetterReader
from sluicegate.dead_letters.mapped_format import mapped_format
from tests.config.reading import SMALLEST, load_text, problems_of_text
from tests.dead_letters.letters import CONNECT, OWN, TIME, record

# Sarama's and other hand-written consumers name their headers in their own code, so these headers are examples.
ALL_FIELDS = """dead_letter_topics:
- match: dead
  prefixes: [x-error-]
  headers:
    topic: x-topic
    partition: x-partition
    offset: x-offset
    timestamp: x-time
    error: x-code
    message: x-text
    stage: x-step
    rule: x-rule
    attempts: x-tries
    client: x-app
"""
ADDED: Headers = (
    (b"x-topic", b"orders"),
    (b"x-partition", b"2"),
    (b"x-offset", b"41"),
    (b"x-time", b"1764000000000"),
    (b"x-code", b"E42"),
    (b"x-text", b"no lines"),
    (b"x-step", b"parse"),
    (b"x-rule", b"has-lines"),
    (b"x-tries", b"3"),
    (b"x-app", b"packers"),
    (b"x-error-trace", b"at line 7"),
)


def read(text: str, headers: Headers) -> Letter | None:
    entries = load_text(SMALLEST + text).config.dead_letter_topics
    return LetterReader([mapped_format(entry) for entry in entries]).read(record(headers))


def test_reads_each_field_from_its_header() -> None:
    found = read(ALL_FIELDS, (*OWN, *ADDED))

    assert found is not None
    assert found.format is LetterFormat.MAPPED
    assert (found.topic, found.partition, found.offset, found.timestamp) == ("orders", 2, 41, 1_764_000_000_000)
    assert (found.error, found.text, found.stage, found.rules) == ("E42", "no lines", "parse", ("has-lines",))
    assert (found.attempts, found.client, found.headers) == (3, "packers", OWN)


def test_reads_numbers_as_javas_byte_buffer_writes_them() -> None:
    numbers = {b"x-partition": struct.pack(">i", 2), b"x-offset": struct.pack(">q", 41), b"x-tries": b"\3"}
    found = read(ALL_FIELDS + "  numbers: big_endian\n", tuple((name, numbers.get(name, data)) for name, data in ADDED))

    assert found is not None
    assert (found.partition, found.offset, found.attempts) == (2, 41, 3)


def test_each_record_of_a_topic_with_one_original_topic_is_a_letter() -> None:
    text = "dead_letter_topics: [{match: 'd*', from_topic: orders, keeps_timestamp: true}]\n"
    plain, connect = read(text, OWN), read(text, CONNECT)

    assert plain is not None
    assert (plain.format, plain.topic, plain.timestamp, plain.headers) == (LetterFormat.MAPPED, "orders", TIME, OWN)
    assert connect is not None
    assert connect.format is LetterFormat.CONNECT, "the headers of a known writer count"


def test_a_letter_has_the_mapped_format_if_its_headers_are_last() -> None:
    ours_last, connect_last = read(ALL_FIELDS, (*CONNECT, *ADDED)), read(ALL_FIELDS, (*ADDED, *CONNECT))

    assert ours_last is not None
    assert (ours_last.format, ours_last.headers) == (LetterFormat.MAPPED, CONNECT)
    assert connect_last is not None
    assert connect_last.format is LetterFormat.CONNECT


@pytest.mark.parametrize(
    ("text", "headers"),
    [
        (ALL_FIELDS.replace("match: dead", "match: other"), ADDED),
        (ALL_FIELDS, OWN),
        (ALL_FIELDS, ((b"x-topic", None),)),
        ("", ADDED),
    ],
)
def test_records_without_the_mapped_headers_are_not_letters(text: str, headers: Headers) -> None:
    assert read(text, headers) is None


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("match: d", "set exactly one of headers.topic and from_topic"),
        ("match: d, from_topic: a, headers: {topic: b}", "set exactly one of headers.topic and from_topic"),
        ("match: d, from_topic: a b", "not a valid topic name"),
        ("match: d, headers: {topic: b, error: b}", "two fields have the header b"),
        ("match: d, headers: {topic: b, timestamp: c}, keeps_timestamp: true", "cannot be combined"),
        ("match: d, headers: {topic: b}, numbers: binary", "big_endian"),
        ("match: d, headers: {topic: b, place: c}", "place"),
    ],
)
def test_mistakes_in_dead_letter_topic_entries_are_errors(entry: str, words: str) -> None:
    (problem,) = problems_of_text(f"{SMALLEST}dead_letter_topics: [{{{entry}}}]\n")

    assert words in problem
