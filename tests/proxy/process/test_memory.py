"""What a process that serves holds: nothing of what has read its configuration, nor of the files it has taken."""

import json
import pickle
import subprocess
import sys
import textwrap

from sluicegate.config.reading import config_of

READS = {"cryptography", "pydantic", "pydantic_core", "rich", "scramp", "typer", "yaml"}
EXTRA = {"confluent_kafka", "google", "opentelemetry", "requests"}
"""What only some keys of the configuration need."""
LATER = {"greenlet", "re2", "zipfile"}
"""What is loaded with the first pattern or the first registry; or never. cramjam is not listed: prometheus_client
imports python-snappy, and so cramjam, where the tests have installed it.
"""
SERVE = textwrap.dedent("""
    import asyncio, json, pickle, sys
    import sluicegate.proxy.process.serving, sluicegate.proxy.process.running, sluicegate.proxy.process.preloaded
    from sluicegate.proxy.process.server import Server

    async def serve(config):
        server = Server(config)
        await server.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", server.admin_port)
        writer.write(b"GET /metrics HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n\\r\\n")
        assert b"200" in await reader.readline()
        writer.close()
        await server.drain()

    asyncio.run(serve(pickle.load(sys.stdin.buffer)))
    print(json.dumps(sorted({name.split(".")[0] for name in sys.modules})))
""")


def test_what_serves_loads_nothing_that_only_reads() -> None:
    addresses = {"upstream": {"bootstrap": ["127.0.0.1:1"]}, "admin": {"listen": "127.0.0.1:0"}}
    config = config_of({**addresses, "listen": {"bootstrap": "127.0.0.1:0", "broker_ports": 29_000}})

    done = subprocess.run(
        [sys.executable, "-c", SERVE], input=pickle.dumps(config), stdout=subprocess.PIPE, timeout=60, check=True
    )

    loaded = set(json.loads(done.stdout.splitlines()[-1]))
    assert "sluicegate" in loaded
    assert loaded & (READS | EXTRA | LATER) == set()


TAKE = textwrap.dedent("""
    import asyncio, json, pickle, sys
    from pathlib import Path
    import sluicegate.proxy.process.serving, sluicegate.proxy.process.running, sluicegate.proxy.process.preloaded
    from sluicegate.proxy.process.server import Server

    def resident_kb():
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("Rss:"))

    async def take_files(sent):
        server = Server(pickle.loads(sent))
        await server.start()
        seen = []
        for number in range(6001):
            await server.adopt(pickle.loads(sent.replace(b"topic-0000", b"topic-%04d" % number)))
            if number % 3000 == 0:
                seen.append(resident_kb())
        await server.drain()
        return seen

    print(json.dumps(asyncio.run(take_files(sys.stdin.buffer.read()))))
""")
MOST_GROWN_KB = 128
"""28 were measured; fifty bytes kept of each file would be 150."""


def test_who_takes_thousands_of_files_soon_grows_no_more() -> None:
    addresses = {"upstream": {"bootstrap": ["127.0.0.1:1"]}, "admin": {"listen": "127.0.0.1:0"}}
    topics = [{"match": f"topic-0000.{number}", "message.timestamp.before.max.ms": 1000} for number in range(6)]
    listen = {"bootstrap": "127.0.0.1:0", "broker_ports": 29_000}
    sent = pickle.dumps(config_of({**addresses, "listen": listen, "topics": topics}))

    done = subprocess.run([sys.executable, "-c", TAKE], input=sent, stdout=subprocess.PIPE, timeout=120, check=True)

    _, after_3000, after_6000 = json.loads(done.stdout.splitlines()[-1])
    assert after_6000 - after_3000 < MOST_GROWN_KB
