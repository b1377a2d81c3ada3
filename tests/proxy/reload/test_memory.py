"""Reloads do not increase the memory."""

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

PROGRAM = textwrap.dedent("""
    import asyncio, json, sys
    from pathlib import Path
    from sluicegate.proxy.server.server import Server
    from sluicegate.proxy.reload.config_check import check_policies
    from sluicegate.proxy.reload.config_file import ConfigFile

    def resident_kb():
        lines = Path("/proc/self/smaps_rollup").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("Rss:"))

    async def reload_often(path):
        content, file = path.read_text(), ConfigFile(path, ())
        server = Server(file.read().config)
        await server.start()
        seen = []
        for number in range(1201):
            path.write_text(content.replace("topic-0000", f"topic-{number:04}"))
            loaded = file.read()
            check_policies(loaded)
            await server.adopt(loaded.config)
            if number % 400 == 0:
                seen.append(resident_kb())
        await server.drain()
        return seen

    print(json.dumps(asyncio.run(reload_often(Path(sys.argv[1])))))
""")
MOST_GROWN_KB = 128
"""The maximum growth in 800 reloads, which is 160 bytes per reload."""


def test_memory_does_not_grow_after_hundreds_of_reloads(tmp_path: Path) -> None:
    topics = [{"match": f"topic-0000.{number}", "message.timestamp.before.max.ms": 1000} for number in range(6)]
    config = {
        "upstream": {"bootstrap": ["127.0.0.1:1"]},
        "listen": {"bootstrap": "127.0.0.1:0", "broker_port_base": 29_000},
        "topics": topics,
    }
    path = tmp_path / "c.yaml"
    path.write_text(json.dumps(config))

    done = subprocess.run([sys.executable, "-c", PROGRAM, path], stdout=subprocess.PIPE, timeout=300, check=True)

    _, after_400, _, after_1200 = json.loads(done.stdout.splitlines()[-1])
    assert after_1200 - after_400 < MOST_GROWN_KB
