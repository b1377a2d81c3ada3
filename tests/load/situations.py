"""Defines the situations in bench/results/reliability.md: kind and size of the crowd, and the expected outcome."""

from dataclasses import dataclass, field
from typing import Any

from tests.load.kinds import CrowdSize

MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Situation:
    """`broker`: the mode of the crowd's stand-in broker. `most_held`: how much memory may grow (bytes).
    `cut_off`: the limit that disconnects the whole crowd in the long form (a label of
    `sluicegate_connections_closed_by_limit_total`).
    `is_served`: whether each client must be served. `elsewhere`: whether the small client's waits are also measured
    while the crowd bypasses the proxy.
    """

    name: str
    kind: str
    short: CrowdSize
    long: CrowdSize
    broker: str = "sound"
    config: dict[str, Any] = field(default_factory=dict)
    tls: bool = False
    most_held: int = 96 * MB
    cut_off: str | None = None
    is_served: bool = False
    elsewhere: bool = False

    def size(self, is_long: bool) -> CrowdSize:
        return self.long if is_long else self.short


def _bomb(codec: str) -> Situation:
    return Situation(
        f"bombs of 400 MB, one after the other: {codec}",
        f"bomb: {codec}",
        CrowdSize(1, 20 * MB, seconds=0.5),
        CrowdSize(1, 400 * MB, seconds=10),
        is_served=True,
    )


SITUATIONS = [
    Situation(
        "5,000 connections, 500 a second, a small Produce every 2 s each",
        "produce every 2 s",
        CrowdSize(500, a_second=500, seconds=3),
        CrowdSize(5_000, a_second=500, seconds=25),
        most_held=200 * MB,
        is_served=True,
    ),
    Situation(
        "5,000 silent connections, closed after 20 s",
        "silent",
        CrowdSize(300, seconds=1),
        CrowdSize(5_000, a_second=1_000, seconds=45),
        config={"limits": {"idle_timeout_seconds": 20}},
        cut_off="limits.idle_timeout_seconds",
    ),
    Situation(
        "8 fast readers of 256 kB responses, then a slow one beside them",
        "read slowly",
        CrowdSize(8, seconds=2),
        CrowdSize(8, seconds=20),
        broker="fetches 256000",
        is_served=True,
    ),
    Situation(
        "500 clients that send a byte a second",
        "trickle",
        CrowdSize(50, seconds=2),
        CrowdSize(500, seconds=45),
        cut_off="limits.frame_timeout_seconds",
    ),
    Situation(
        "200 clients with 20,000 requests each that read no response",
        "pipeline unread",
        CrowdSize(20, 2_000, seconds=2),
        CrowdSize(200, 20_000, seconds=20),
    ),
    Situation(
        "6 clients with batches of 90 MB, one after the other",
        "giants",
        CrowdSize(4, 8 * MB, seconds=2),
        CrowdSize(6, 90 * MB, seconds=30),
        most_held=700 * MB,
        is_served=True,
    ),
    *(_bomb(codec) for codec in ("gzip", "snappy", "lz4", "zstd")),
    Situation(
        "100,000 client ids on 8 connections",
        "new names",
        CrowdSize(8, 4_000, seconds=15),
        CrowdSize(8, 100_000, seconds=120),
        is_served=True,
    ),
    Situation(
        "one client at full speed, acks=1",
        "at full speed",
        CrowdSize(1, seconds=2),
        CrowdSize(1, seconds=10),
        elsewhere=True,
    ),
    Situation(
        "one client at full speed, acks=0, before a broker that reads everything",
        "at full speed, acks=0",
        CrowdSize(1, seconds=2),
        CrowdSize(1, seconds=10),
        broker="silent",
        elsewhere=True,
    ),
    Situation(
        "one client at full speed over TLS, acks=1",
        "at full speed",
        CrowdSize(1, seconds=2),
        CrowdSize(1, seconds=10),
        tls=True,
        elsewhere=True,
    ),
    Situation(
        "2,000 connections that never finish a TLS handshake",
        "begin handshakes",
        CrowdSize(200, seconds=2),
        CrowdSize(2_000, seconds=45),
        tls=True,
    ),
]
