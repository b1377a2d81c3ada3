"""If there are several workers, a reload puts the same policies in force in all of them, or in none."""

import asyncio
import time
from typing import cast

import pytest

from sluicegate.config.loading import ConfigError, config_of
from sluicegate.proxy.workers.messages import Adopt, Adopted, Compile, Outbox, PoliciesCompiled
from sluicegate.proxy.workers.supervisor import Supervisor
from sluicegate.proxy.workers.worker_process import WorkerProcess

ADDRESSES = {
    "upstream": {"bootstrap": "127.0.0.1:1"},
    "listen": {"bootstrap": "127.0.0.1:0", "broker_port_base": 29_000},
    "workers": 2,
}
FIRST = config_of(ADDRESSES)
SECOND = config_of(ADDRESSES | {"defaults": {"mode": "observe"}})


class ScriptedWorker:
    """Responds at once; `problem`: why it cannot compile what it is sent."""

    def __init__(self, supervisor: Supervisor, index: int) -> None:
        self.problem: str | None = None
        self.requests: list[object] = []
        self._supervisor = supervisor
        now = time.monotonic()
        self.known = WorkerProcess(index, None, None, cast("Outbox", self), now, now)

    def send(self, word: object) -> None:
        self.requests.append(word)
        if isinstance(word, Compile):
            self._respond(PoliciesCompiled(word.number, self.problem))
        elif isinstance(word, Adopt):
            self._respond(Adopted(word.number))

    def _respond(self, message: PoliciesCompiled | Adopted) -> None:
        asyncio.get_running_loop().call_soon(self._supervisor._on_message, self.known, message)


class Stage:
    def __init__(self) -> None:
        self.supervisor = Supervisor(FIRST)
        self.workers = [ScriptedWorker(self.supervisor, index) for index in (1, 2)]
        for worker in self.workers:
            self.supervisor._workers.add(worker.known)

    def requests(self) -> list[list[type]]:
        return [[type(each) for each in worker.requests] for worker in self.workers]


async def test_all_workers_compile_policies_before_any_worker_adopts_them() -> None:
    stage = Stage()

    await stage.supervisor.adopt(SECOND)

    assert stage.requests() == [[Compile, Adopt]] * 2
    assert [worker.known.adopted for worker in stage.workers] == [1, 1]
    assert stage.supervisor._for_workers.defaults.mode == "observe"


async def test_no_worker_adopts_policies_that_one_worker_cannot_compile() -> None:
    stage = Stage()
    stage.workers[1].problem = "schema.json cannot be read"

    with pytest.raises(ConfigError, match=r"worker 2: schema\.json cannot be read"):
        await stage.supervisor.adopt(SECOND)

    assert stage.requests() == [[Compile]] * 2
    assert stage.supervisor._for_workers.defaults.mode is None
    stage.workers[1].problem = None
    await stage.supervisor.adopt(SECOND)
    assert [worker.known.adopted for worker in stage.workers] == [1, 1]


async def test_worker_restarted_during_a_reload_also_compiles_and_adopts() -> None:
    stage = Stage()
    first = stage.workers[0]
    restarted = ScriptedWorker(stage.supervisor, 2)

    def replace_worker_at_compile(word: object) -> None:
        first.requests.append(word)
        if isinstance(word, Compile):
            stage.supervisor._workers.add(restarted.known)
            first._respond(PoliciesCompiled(word.number))
        elif isinstance(word, Adopt):
            first._respond(Adopted(word.number))

    first.send = replace_worker_at_compile  # type: ignore[method-assign]  # a spy

    await stage.supervisor.adopt(SECOND)

    assert [type(each) for each in restarted.requests] == [Compile, Adopt]
    assert restarted.known.adopted == 1
