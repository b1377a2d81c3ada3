"""Passes mutated batches to the compiled code in this process: `python -m tests.fuzz.in_process --batches 1000000`.

Exits with 1 after an internal error, after a call that took too long, or if memory grew. Faults in C end the process
itself (AddressSanitizer and UndefinedBehaviorSanitizer: tests/fuzz/sanitized.py).
"""

import argparse
import gc
import logging
import random
import resource
import struct
import sys
import time
import traceback
from typing import Any
from zlib import crc32

import structlog
from crc32c import crc32c

import sluicegate.protocol.produce_request
from tests.bounds.frames import ProduceLayout, request_header
from tests.fuzz import compiled
from tests.fuzz.explored import sessions
from tests.fuzz.mutations import mutate
from tests.fuzz.recorded.streams import recorded_streams
from tests.fuzz.seeds import seed_batches, seed_values

_BATCHES_A_REQUEST = 24
_LENGTH_AT, _LOG_OVERHEAD, _OLD_CRC_AT, _MAGIC_AT, _CRC_AT, _COVERED_AT = 8, 12, 12, 16, 17, 21
_MAX_CALL_SECONDS = 2.0
_MAX_GROWTH_BYTES = 256 << 20
_PAYLOAD_AT = 61
_TURNS_A_SESSION = 16


class Counts:
    def __init__(self) -> None:
        self.batches = self.bytes = self.calls = self.malformed = self.faults = 0
        self.longest = 0.0


def with_valid_header(one: bytearray, seed: bytes) -> bytearray:
    """Restore the header fields without which the whole request fails before the batch is read."""
    if len(one) < _PAYLOAD_AT:
        one += bytes(_PAYLOAD_AT - len(one))
    one[_MAGIC_AT] = seed[_MAGIC_AT] if len(seed) > _MAGIC_AT and seed[_MAGIC_AT] <= 2 else 2
    if one[_MAGIC_AT] == 2:
        struct.pack_into(">i", one, _LENGTH_AT, len(one) - _LOG_OVERHEAD)
        struct.pack_into(">I", one, _CRC_AT, crc32c(memoryview(one)[_COVERED_AT:]))
        return one
    length = struct.unpack_from(">i", seed, _LENGTH_AT)[0]
    if not 0 <= length <= len(one) - _LOG_OVERHEAD:
        length = len(one) - _LOG_OVERHEAD
    struct.pack_into(">i", one, _LENGTH_AT, length)
    struct.pack_into(">I", one, _OLD_CRC_AT, crc32(memoryview(one)[_MAGIC_AT : _LOG_OVERHEAD + length]))
    return one


class Fuzzer:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.counts = Counts()
        self.now = time.time_ns() // 1_000_000
        self.seeds = seed_batches(self.now)
        self.values = seed_values()
        self.streams = list(recorded_streams().values())
        self.turns = 0
        self.layouts = [ProduceLayout(version) for version in range(14)]
        self.headers = [request_header(0, version) for version in range(14)]

    def turn(self) -> None:
        """Run one request of several mutated batches, a few calls of each other part, and sometimes a whole session."""
        chance = self.chance
        self.turns += 1
        if self.turns % _TURNS_A_SESSION == 0:
            self._session()
        version = chance.randrange(14)
        layout = self.layouts[version]
        in_order = bool(chance.getrandbits(3))
        hurt = [self._batch(in_order) for _ in range(_BATCHES_A_REQUEST)]
        partitions = [layout.partition(i, bytes(one)) for i, one in enumerate(hurt)]
        middle = _BATCHES_A_REQUEST // 2
        topics = [
            layout.topic(chance.choice(compiled.TOPICS), part) for part in (partitions[:middle], partitions[middle:])
        ]
        frame = bytearray(self.headers[version] + layout.body(topics))
        self._call(compiled.validate, frame, version, len(self.headers[version]), self.now)
        self.counts.batches += _BATCHES_A_REQUEST
        wounded = mutate(bytes(frame), chance, self.seeds)
        self.counts.bytes += len(frame) + len(wounded)
        self._call(compiled.validate, wounded, version, min(len(wounded), len(self.headers[version])), self.now)
        payload = bytes(hurt[0][_PAYLOAD_AT:])
        self._call(compiled.decompress, 1 + chance.getrandbits(2), payload, chance.randrange(3))
        self._call(compiled.ask_natively, bytes(mutate(chance.choice(self.values), chance, self.values)))
        self._call(compiled.walk_response, wounded, version, min(len(wounded), 8))
        self._call(compiled.read_frames, bytes(wounded), 1 + chance.getrandbits(3))

    def _session(self) -> None:
        """Run the start of a real client's stream, then the mutated rest."""
        stream = self.chance.choice(self.streams)
        wounded = stream + mutate(stream, self.chance, self.streams)
        self.counts.bytes += len(wounded)
        self._call(sessions.from_client, self.chance.randbytes(2) + wounded)

    def _batch(self, in_order: bool) -> bytearray:
        chance = self.chance
        seed = chance.choice(self.seeds)
        one = mutate(seed, chance, self.seeds)
        return with_valid_header(one, seed) if in_order else one

    def _call(self, what: Any, *arguments: Any) -> None:
        begun = time.thread_time()  # CPU time, because other processes share the processor
        try:
            if what(*arguments) is False:
                self.counts.malformed += 1
        except Exception:
            self.counts.faults += 1
            if self.counts.faults <= 5:
                traceback.print_exc()
                print("with", what.__name__, [a.hex() if isinstance(a, bytes | bytearray) else a for a in arguments])
        self.counts.calls += 1
        self.counts.longest = max(self.counts.longest, time.thread_time() - begun)


def run(wanted: int, seed: int) -> list[str]:
    """Run the batches, print a summary, and return a description of each failure."""
    fuzzer = Fuzzer(seed)
    counts = fuzzer.counts
    for _ in range(50):
        fuzzer.turn()
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    begun = time.monotonic()
    while counts.batches < wanted:
        fuzzer.turn()
    seconds = time.monotonic() - begun
    growth = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before
    is_compiled = sluicegate.protocol.produce_request.__file__.endswith(".so")
    print(
        f"{counts.batches:,} mutated batches, {counts.bytes:,} bytes, {counts.calls:,} calls of the "
        f"{'' if is_compiled else 'UN'}compiled code in {seconds:.0f} s "
        f"({counts.batches / max(seconds, 0.001):,.0f} batches/s), seed {seed}; {counts.malformed:,} malformed; "
        f"longest call {counts.longest * 1000:.0f} ms; memory grew by {growth >> 20} MiB; "
        f"{counts.faults} faults",
        flush=True,
    )
    wrong = []
    if counts.faults:
        wrong.append(f"{counts.faults} calls raised an internal error")
    if counts.longest > _MAX_CALL_SECONDS:
        wrong.append(f"a call took {counts.longest:.1f} s")
    if growth > _MAX_GROWTH_BYTES:
        wrong.append(f"memory grew by {growth >> 20} MiB")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batches", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 31))
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    wrong = run(given.batches, given.seed)
    for text in wrong:
        print(text, file=sys.stderr)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
