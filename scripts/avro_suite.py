#!/usr/bin/env python3
"""Validates the schemas and data of Avro's share/test: each schema compiles, and each datum follows its schema.

scripts/avro_suite.py AVRO    # a checkout of github.com/apache/avro

A datum without its last byte must be rejected. Ends with 1 if there are differences.
"""

import io
import json
import re
import sys
import zlib
from pathlib import Path

import cramjam
import fastavro
import zstandard

from sluicegate.validation.rules.avro.schema import avro_content
from sluicegate.validation.rules.rule import StepBudget
from sluicegate.validation.rules.schemas.content import SchemaUnusable

MAGIC, SYNC_BYTES = b"Obj\x01", 16
META = {"type": "map", "values": "bytes"}
CODECS = {
    "null": bytes,
    "deflate": lambda block: zlib.decompress(block, -15),
    "snappy": lambda block: bytes(cramjam.snappy.decompress_raw(block[:-4])),  # a CRC follows
    "zstandard": lambda block: zstandard.ZstdDecompressor().decompressobj().decompress(block),
}
SINGLE_OBJECT_BYTES = 10  # a marker and a fingerprint
INPUT = re.compile(r"^<<INPUT(?: ([^\n]*)|\n(.*?)\nINPUT)$", re.MULTILINE | re.DOTALL)


def main(folder: Path) -> None:
    share = folder / "share" / "test"
    differences = []
    texts = [found[1] or found[2] for found in INPUT.finditer((share / "data" / "schema-tests.txt").read_text())]
    texts += [file.read_text() for file in sorted(share.rglob("*.avsc"))]
    for text in texts:
        try:
            avro_content(text)
        except SchemaUnusable as error:
            differences.append(f"{text[:80]}: {error}")
    count = 0
    for text, datum in data(share):
        content = avro_content(text)
        count += 1
        words = content.fault(datum, StepBudget())
        if words is not None:
            differences.append(f"{text[:80]}: {words}")
        if datum and content.fault(datum[:-1], StepBudget()) is None:
            differences.append(f"{text[:80]}: a datum without its last byte is accepted")
    print(f"{len(texts)} schemas, {count} data, {len(differences)} differences")
    print(*differences, sep="\n")
    if differences or not count:
        sys.exit(1)


def data(share: Path):
    """Yield each datum with its schema."""
    for file in sorted(share.rglob("*.avro")):
        written = file.read_bytes()
        if written.startswith(MAGIC):
            yield from of_container(written)
        else:
            yield file.with_name("schema.json").read_text(), written
    message = share / "data" / "messageV1"
    yield (message / "test_schema.avsc").read_text(), (message / "test_message.bin").read_bytes()[SINGLE_OBJECT_BYTES:]


def of_container(written: bytes):
    """Yield each datum of an object container file with the schema of the file."""
    stream = io.BytesIO(written[len(MAGIC) :])
    meta = fastavro.schemaless_reader(stream, META, None)
    text = meta["avro.schema"].decode()
    uncompress = CODECS[meta.get("avro.codec", b"null").decode()]
    schema = fastavro.parse_schema(json.loads(text))
    stream.seek(SYNC_BYTES, io.SEEK_CUR)
    while stream.tell() < len(written) - len(MAGIC):
        count, size = (fastavro.schemaless_reader(stream, "long", None) for _ in range(2))
        block = io.BytesIO(uncompress(stream.read(size)))
        for _ in range(count):
            begin = block.tell()
            fastavro.schemaless_reader(block, schema, None)
            yield text, block.getvalue()[begin : block.tell()]
        stream.seek(SYNC_BYTES, io.SEEK_CUR)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
