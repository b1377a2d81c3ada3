"""Bounds apply to the millisecond, with a broker and a proxy whose clocks are frozen at the same time."""

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.broker.fixtures import EVERY_RELEASE_IF_THOROUGH
from tests.broker.kafka import FROZEN_CLOCK, Kafka
from tests.broker.proxy_process import FROZEN_CLOCK as FROZEN_PROXY
from tests.broker.proxy_process import ProxyProcess
from tests.conformance.cases import AFTER_MAX, BEFORE_MAX, LONG_MAX, LONG_MIN
from tests.conformance.pair import Pair, Request, proxy_settings, versions_of
from tests.conformance.results import RESULTS
from tests.wire.batches import CODECS, ZSTD, Rec, batch, message

OFFSETS = {
    "on the earlier bound": -BEFORE_MAX,
    "one ms before it": -BEFORE_MAX - 1,
    "one ms after it": -BEFORE_MAX + 1,
    "now": 0,
    "on the later bound": AFTER_MAX,
    "one ms past it": AFTER_MAX + 1,
    "one ms short of it": AFTER_MAX - 1,
}


@dataclass(frozen=True)
class PathsWithFrozenClocks:
    """Both paths with frozen clocks (ms)."""

    at: int
    validating: Kafka
    proxy: ProxyProcess


@pytest.fixture(scope="module")
def paths_with_frozen_clocks(
    kafka_version: str, trusting_broker: Kafka, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PathsWithFrozenClocks]:
    at = time.time_ns() // 1_000_000
    folder = tmp_path_factory.mktemp("frozen")
    kafka = Kafka(kafka_version, folder, program=FROZEN_CLOCK, options=(f"-Dfrozen.at={at}",))
    proxy = ProxyProcess(tmp_path_factory.mktemp("proxy"), trusting_broker.bootstrap, proxy_settings())
    proxy.command = [sys.executable, "-c", FROZEN_PROXY.format(at=at)]
    try:
        yield PathsWithFrozenClocks(at, kafka.start(), proxy.start())
    finally:
        proxy.stop()
        kafka.stop()


def timestamps_around_bounds(at: int) -> dict[str, list[int]]:
    """Return timestamps: each bound alone and among good ones, and values at which Java's arithmetic overflows."""
    alone = {name: [at + offset] for name, offset in OFFSETS.items()}
    among = {f"{name}, among good ones": [at, at + offset, at] for name, offset in OFFSETS.items()}
    wrapped = (at - LONG_MAX) % 2**64 - 2**63 * ((at - LONG_MAX) % 2**64 >= 2**63) * 2
    odd = {
        f"around {name} {step:+d}": [at, value + step]
        for name, value in {"the overflow": wrapped, "Long.MIN": LONG_MIN + 1, "Long.MAX": LONG_MAX - 1}.items()
        for step in (-1, 0, 1)
    }
    return alone | among | odd


@EVERY_RELEASE_IF_THOROUGH
def test_timestamp_bounds_equal_the_brokers_to_the_millisecond(
    kafka_version: str, trusting_broker: Kafka, paths_with_frozen_clocks: PathsWithFrozenClocks
) -> None:
    key = kafka_version, "bounds"
    known = versions_of(kafka_version)
    differences = []
    rejected: list[Any] = []

    with Pair("bounds", paths_with_frozen_clocks.validating, trusting_broker, paths_with_frozen_clocks.proxy) as pair:
        for name, stamps in timestamps_around_bounds(paths_with_frozen_clocks.at).items():
            records = [Rec(stamp) for stamp in stamps]
            contents = {
                codec_name: (batch(records, codec), 7 if codec == ZSTD else 3) for codec_name, codec in CODECS.items()
            }
            contents["magic 1"] = (b"".join(message(1, b"v", timestamp=stamp) for stamp in stamps), 2)
            for codec_name, (content, version) in contents.items():
                for chosen in {version, known[-1] if version > 2 else version} & set(known):
                    request = Request(chosen, [("bounded", [(0, content)]), ("open", [(0, content)])])
                    expected, found = pair.compare(request, paths_with_frozen_clocks.at)
                    RESULTS.count(key, found == expected, None)
                    rejected.append((name, found["responses"][0]["partition_responses"][0]["error_code"]))
                    if found != expected:
                        differences.append(f"{name}, {codec_name} v{chosen}:\n  broker {expected}\n  proxy  {found}")
        differences += pair.differing_logs()

    assert not differences, "\n".join(differences[:20])
    assert {code for name, code in rejected if name.startswith("on the")} == {0}
    assert {code for name, code in rejected if name.startswith(("one ms before", "one ms past"))} == {32}
