"""`make bench-scan`: the validation of a batch against Kafka's own LogValidator, on the same bytes in the same run.

Run: python -m bench.scan [--seconds S] [--out FOLDER]. All are the best of many, warm, with their buffers reused. The
validation is that of the ordinary that such a batch takes: the fast one, where it becomes no more than 1 MiB.
"""

import argparse
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.ending import end_on_sigterm
from bench.figures import PARTS, RESULTS, Figure, fill_in, goals_table, write_json
from bench.targets import KAFKA_CLASS_PATH
from sluicegate.config.loading import read_section
from sluicegate.config.topics import TopicKeys
from sluicegate.protocol.records.codecs.codec import Codec
from sluicegate.protocol.records.codecs.decompression import Decompressor
from sluicegate.protocol.records.codecs.decompression_budget import DecompressionBudget
from sluicegate.protocol.records.record_batch import HEADER_BYTES, RecordBatch
from sluicegate.proxy.fastpath.paths import GOOD, make_ordinary_requests
from sluicegate.validation.from_keys import compile_policies
from sluicegate.validation.in_force import RulesInForce
from sluicegate.validation.policy import TopicPolicy, ValidationLimits
from sluicegate.validation.rulebook import Rulebook
from sluicegate.validation.validator import Submission, validate_partition
from sluicegate.validation.verdict import Accepted
from tests.bounds.frames import request_header, sized_produce_request
from tests.broker.child_processes import killed_with_parent

_SOURCE = Path(__file__).with_name("LogValidatorBench.java")
_UNCOMPRESSED_GOAL, _COMPRESSED_GOAL = 0.5, 0.7
_LIBRARY_BOUND_GOAL = 0.8
_LIBRARY_BOUND = ("lz4, 1000 B records", "zstd, 1000 B records")
"""Nearly all of these batches' time is the codec's own, in a C library that both sides call."""
_VERSION, _TOPIC_ID, _MOST_PARTITIONS = 13, b"sixteen bytes id", 1000
_BEFORE_MAX_MS, _AFTER_MAX_MS = 86_400_000, 3_600_000
_ORDER = ("none", "gzip", "snappy", "lz4", "zstd")


def best_ns(run: Callable[[], object], seconds: float) -> float:
    """The shortest of many calls (ns)."""
    best, end = float("inf"), time.perf_counter() + seconds
    while time.perf_counter() < end:
        started = time.perf_counter_ns()
        run()
        best = min(best, time.perf_counter_ns() - started)
    return best


def figures_of(batch: Path, validator_ns: float, seconds: float) -> list[Figure]:
    """The validation of one batch, and what of it is the codec's own library."""
    codec_name, count, size = batch.stem.split("-")
    load, records = f"{codec_name}, {size} B records", int(count)
    data = memoryview(batch.read_bytes())
    header = RecordBatch(data, 0, len(data))
    decompressor, limits = Decompressor(), ValidationLimits()
    submission = Submission("bench", 0, data, 13)
    policy = TopicPolicy(before_max_ms=_BEFORE_MAX_MS, after_max_ms=_AFTER_MAX_MS)

    def validate_slowly() -> object:
        budget = DecompressionBudget(limits.max_decompressed_bytes, limits.max_record_errors, lambda: None)
        return validate_partition(submission, policy, limits, header.base_timestamp, decompressor, budget)

    verdict = validate_slowly()
    if not isinstance(verdict, Accepted) or verdict.records != records:
        raise RuntimeError(f"{batch.name} was not accepted: {verdict}")
    validate_fast = _on_the_fast_path(data, header.base_timestamp)
    slow = best_ns(validate_slowly, seconds)
    ours = slow if validate_fast is None else best_ns(validate_fast, seconds)
    compressed = _LIBRARY_BOUND_GOAL if load in _LIBRARY_BOUND else _COMPRESSED_GOAL
    goal = _UNCOMPRESSED_GOAL if header.codec_id == Codec.NONE else compressed
    made = [
        Figure("validation : LogValidator, time per record", load, ours / validator_ns, "", goal),
        Figure("validation", load, ours / records, "ns per record"),
        Figure("validation, slow path", load, slow / records, "ns per record"),
        Figure("LogValidator", load, validator_ns / records, "ns per record"),
    ]
    if header.codec_id != Codec.NONE:
        codec, payload = Codec(header.codec_id), data[HEADER_BYTES:]
        limit = limits.plain_limit(len(payload))
        alone = best_ns(lambda: decompressor.decompress(codec, payload, limit), seconds)
        made += [
            Figure("decompression alone", load, alone / records, "ns per record"),
            Figure("decompression alone : LogValidator", load, alone / validator_ns, ""),
        ]
    return made


def _on_the_fast_path(data: memoryview, now_ms: int) -> Callable[[], object] | None:
    """Of a Produce request that has this batch; None where that ordinary leaves it to the other one, for its size."""
    keys = {
        "message.timestamp.before.max.ms": _BEFORE_MAX_MS,
        "message.timestamp.after.max.ms": _AFTER_MAX_MS,
        "max.message.bytes": 10 << 20,
    }
    rules = RulesInForce(Rulebook(compile_policies(read_section(TopicKeys, keys))))
    ordinary = make_ordinary_requests(ValidationLimits(), _MOST_PARTITIONS, lambda: now_ms, rules)
    if ordinary is None:
        raise RuntimeError("there is no fast path: it was not compiled")
    ordinary.add_topic(_TOPIC_ID, True, "bench", rules.rulebook.policy_of("bench"))
    frame = bytearray(sized_produce_request(_VERSION, {_TOPIC_ID: [(0, bytes(data))]})[4:])
    view, start, end = memoryview(frame), len(request_header(0, _VERSION)), len(frame)
    if ordinary.validate(view, start, end, _VERSION) != GOOD:
        return None
    return lambda: ordinary.validate(view, start, end, _VERSION)


def main() -> None:
    """Measure, write scan.json and scan.md, print the table."""
    end_on_sigterm()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=2.5, help="for each batch and side")
    parser.add_argument("--out", type=Path, default=RESULTS)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sluicegate-scan-") as folder:
        command = ["java", "-cp", KAFKA_CLASS_PATH, str(_SOURCE), folder, str(arguments.seconds)]
        completed = subprocess.run(killed_with_parent(command), capture_output=True, text=True, check=False)
        if completed.returncode != 0:
            raise SystemExit(f"Kafka's validator could not be timed:\n{completed.stderr[-2000:]}")
        times = dict(line.split() for line in completed.stdout.splitlines() if ".batch " in line)
        names = sorted(times, key=lambda name: (_ORDER.index(name.split("-")[0]), name))
        figures = [f for n in names for f in figures_of(Path(folder, n), float(times[n]), arguments.seconds)]
    arguments.out.mkdir(parents=True, exist_ok=True)
    write_json(arguments.out / "scan.json", figures)
    table = f"{goals_table(figures)}\n\n{_parts_table(figures)}\n"
    (arguments.out / "scan.md").write_text(table)
    if arguments.out == RESULTS:
        fill_in(PARTS, "scan", table)
    print(table)


def _parts_table(figures: list[Figure]) -> str:
    """Time per record, by batch."""
    columns = ("validation", "validation, slow path", "decompression alone", "LogValidator")
    lines = ["| batch | " + " | ".join(f"{c}, ns per record" for c in columns) + " |", "|" + " --- |" * 5]
    for load in dict.fromkeys(figure.load for figure in figures):
        found = {figure.figure: figure.value for figure in figures if figure.load == load}
        lines.append(f"| {load} | " + " | ".join(f"{found[c]:.1f}" if c in found else "-" for c in columns) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
