"""A schema registry as rules ask it: what is known is told at once, what is not is waited for a moment.

A schema never changes under its id, so it is kept. Whether it is under a subject may change, so it is asked again after
a while, without anybody waiting. Once a registry was late or has failed nobody waits for it until it has answered
again: who needs to know something new gets an Outage at once, and who needs what is known notices nothing. A fault of
our own while it is asked is an Outage too, so that a rule's `on_outage` holds for it. The thread that needs a schema
compiles it, so a schema that takes long to compile neither counts as a failure of the registry nor delays other ids.
"""

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from contextlib import suppress
from math import inf
from time import monotonic
from typing import TypeVar

from sluicegate.proxy.registry.background_fetcher import Errands, TooMany
from sluicegate.proxy.registry.breaker import Breaker, NobodyIsTold, Reports
from sluicegate.proxy.registry.confluent_api import Asks, SchemaText, is_under, schema_of
from sluicegate.proxy.registry.http import RegistryFailed
from sluicegate.proxy.registry.recent import Recent
from sluicegate.proxy.registry.schema_compiler import SchemaCompiler, compiled_here
from sluicegate.proxy.scheduling.fair_sharing import FairSlots
from sluicegate.proxy.scheduling.wait_budget import MayNotWaitHere, WaitBudget, WaitBudgetExceeded
from sluicegate.validation.rules.own_rule import place_of
from sluicegate.validation.rules.rule import Outage, SchemaError
from sluicegate.validation.rules.schemas.content import SchemaUnusable
from sluicegate.validation.rules.schemas.registered_schema import RegisteredSchema, UnknownSchema
from sluicegate.validation.rules.schemas.wire_format import SchemaId

_MOST_SCHEMAS = 1000
_MOST_SCHEMA_BYTES = 24 << 20
# Why a schema cannot be used may change: by a setting, or a library that is installed.
_FINDING_SECONDS = 600.0
# So long a thread waits for another one that compiles the same schema, whose client may have to wait for others.
_SHARED_SECONDS = 5.0
_FINDING_BYTES = 1024
_MOST_SUBJECTS = 10_000
# A no may have been true a moment ago only: whoever has just registered a schema writes with it at once.
_NO_SECONDS = 1.0
# Ids are the clients' to invent: so many that nobody has are asked for in a second, a part of them for each client.
_MOST_UNKNOWN = 20
WAIT_SECONDS = 2.0

T = TypeVar("T")
Found = RegisteredSchema | SchemaText | str | None


class SchemaRegistry:
    """One registry. Any thread may ask but the event loop's. `refresh_seconds`: how long a subject is taken to stay."""

    def __init__(
        self,
        name: str,
        http: Asks,
        refresh_seconds: float = 60.0,
        wait_seconds: float = WAIT_SECONDS,
        now: Callable[[], float] = monotonic,
        wait_budget: WaitBudget | None = None,
        reports: Reports | None = None,
        compiler: SchemaCompiler = compiled_here,
    ) -> None:
        self.name = name
        self._http = http
        self._refresh_seconds = refresh_seconds
        self._wait_seconds = wait_seconds
        self._now = now
        self._wait_budget = wait_budget if wait_budget is not None else WaitBudget()
        self._errands = Errands(f"registry {name}")
        self._compiler = compiler
        self._compiling: dict[SchemaId, Future[RegisteredSchema | str]] = {}
        # A schema, its text that is still to be compiled, why it cannot be used, or None: there is none.
        self._schemas: Recent[SchemaId, Found] = Recent(_MOST_SCHEMAS, _MOST_SCHEMA_BYTES)
        self._subjects: Recent[tuple[SchemaId, str], bool] = Recent(_MOST_SUBJECTS)
        self._reports = reports if reports is not None else NobodyIsTold()
        self._breaker = Breaker(name, now, self._reports)
        self._in_vain_since = 0.0
        self._in_vain = FairSlots(_MOST_UNKNOWN)

    def known(self, schema_id: SchemaId) -> RegisteredSchema | None:
        """A schema that is there at once."""
        known = self._schemas.get(schema_id)
        return known[1] if known is not None and isinstance(known[1], RegisteredSchema) else None

    def schema(self, schema_id: SchemaId) -> RegisteredSchema:
        """Raises UnknownSchema, SchemaError and Outage."""
        try:
            return self._schema(schema_id)
        except (Outage, SchemaError, UnknownSchema, MayNotWaitHere):
            raise
        except Exception as error:
            raise self._outage_of_ours(error) from error

    def is_under(self, schema_id: SchemaId, subject: str) -> bool:
        """Raises Outage."""
        try:
            return self._is_under(schema_id, subject)
        except (Outage, MayNotWaitHere):
            raise
        except Exception as error:
            raise self._outage_of_ours(error) from error

    def close(self) -> None:
        """Give up the connection and the thread: no new rulebook asks it. One that still holds may."""
        with suppress(TooMany):
            self._errands.run("close", self._http.close)
        self._errands.close()

    def _schema(self, schema_id: SchemaId) -> RegisteredSchema:
        known = self._schemas.get(schema_id)
        if known is not None and self._now() - known[0] < _kept_seconds(known[1]):
            found = known[1]
        else:
            who = self._wait_budget.on_behalf_of
            if self._asks_in_vain(who):
                raise Outage(f"registry {self.name} is asked for too many schemas that it does not have; wait a second")
            found = self._wait_for(("schema", schema_id), lambda: self._learn_schema(schema_id, who))
        if isinstance(found, SchemaText):
            found = self._compiled(schema_id, found)
        return self._told(schema_id, found)

    def _is_under(self, schema_id: SchemaId, subject: str) -> bool:
        key = schema_id, subject
        known = self._subjects.get(key)
        if known is not None:
            learnt, was_under = known
            age = self._now() - learnt
            if age < (self._refresh_seconds if was_under else _NO_SECONDS):
                return was_under
            if was_under:
                self._look_again(key)
                return True
        return self._wait_for(("subject", key), lambda: self._learn_subject(key))

    def _compiled(self, schema_id: SchemaId, text: SchemaText) -> RegisteredSchema | str:
        """By this thread, or by one that has begun. Raises Outage and MayNotWaitHere."""
        self._wait_budget.check_may_wait()
        mine: Future[RegisteredSchema | str] = Future()
        under_way = self._compiling.setdefault(schema_id, mine)
        if under_way is not mine:
            with suppress(NotInTime):
                return self._wait_budget.wait_uncounted(under_way, _SHARED_SECONDS)
        try:
            found = self._compile(schema_id, text)
        except BaseException as error:
            mine.set_exception(error)
            raise
        else:
            mine.set_result(found)
            return found
        finally:
            if under_way is mine:
                del self._compiling[schema_id]

    def _compile(self, schema_id: SchemaId, text: SchemaText) -> RegisteredSchema | str:
        try:
            made = self._compiler(text)
        except SchemaUnusable as error:
            self._schemas.learn(schema_id, self._now(), str(error), _FINDING_BYTES)
            return str(error)
        found = RegisteredSchema(text.language, made.content)
        self._schemas.learn(schema_id, self._now(), found, made.size)
        return found

    def _told(self, schema_id: SchemaId, found: RegisteredSchema | str | None) -> RegisteredSchema:
        if found is None:
            raise UnknownSchema
        if isinstance(found, str):
            raise SchemaError(f"schema {schema_id} of registry {self.name} cannot be used: {found}")
        return found

    def _learn_schema(self, schema_id: SchemaId, who: Hashable) -> SchemaText | str | None:
        found = schema_of(self._http, schema_id)
        size = found.size if isinstance(found, SchemaText) else _FINDING_BYTES
        self._schemas.learn(schema_id, self._now(), found, size)
        if found is None:
            self._in_vain.take(who)
        return found

    def _learn_subject(self, key: tuple[SchemaId, str]) -> bool:
        answer = is_under(self._http, *key)
        self._subjects.learn(key, self._now(), answer)
        return answer

    def _look_again(self, key: tuple[SchemaId, str]) -> None:
        """Nobody waits for it, and where it fails what was known stays."""
        if not self._breaker.rests:
            with suppress(TooMany):
                self._errands.run(("subject", key), lambda: self._noted(lambda: self._learn_subject(key)))

    def _wait_for(self, key: Hashable, question: Callable[[], T]) -> T:
        if self._breaker.has_failed:
            self._try_again(key, question)
            raise Outage(f"registry {self.name} cannot be asked: {self._breaker.failure}")
        self._wait_budget.check_may_wait()  # who waits elsewhere asks from there, when it is its client's turn
        try:
            under_way: Future[T] = self._errands.run(key, lambda: self._noted(question))
            return self._wait_budget.wait(under_way, self._wait_seconds)
        except TooMany:
            raise Outage(f"registry {self.name} is asked more than it answers") from None
        except WaitBudgetExceeded:
            raise Outage(f"registry {self.name} has more to be asked for one request than that may wait for") from None
        except NotInTime:
            # Others are before this one, and are answered.
            if self._now() - self._breaker.asked_since < self._wait_seconds / 2:
                raise Outage(f"registry {self.name} is asked more than it answers") from None
            self._breaker.failed(f"no response within {self._wait_seconds:g} s")
            raise Outage(f"registry {self.name} cannot be asked: {self._breaker.failure}") from None
        except RegistryFailed as error:
            raise Outage(f"registry {self.name} cannot be asked: {error}") from error

    def _try_again(self, key: Hashable, question: Callable[[], T]) -> None:
        """Whether it answers again is found out with what is wanted, one question behind each rest."""
        if not self._breaker.rests and self._errands.is_idle:
            with suppress(TooMany):
                self._errands.run(key, lambda: self._noted(question))

    def _noted(self, question: Callable[[], T]) -> T:
        """For the asking thread: the answer, and whether there was one."""
        breaker = self._breaker
        if breaker.rests:
            raise RegistryFailed(breaker.failure)
        breaker.asked()
        try:
            self._http.begin()
            answer = question()
        except RegistryFailed as error:
            breaker.failed(str(error), error.wait_seconds)
            raise
        except Exception as error:
            self._reports.fault(self.name, error)
            breaker.failed(_our_fault(error))
            raise RegistryFailed(breaker.failure) from error
        breaker.answered()
        return answer

    def _outage_of_ours(self, error: Exception) -> Outage:
        self._reports.fault(self.name, error)
        return Outage(f"registry {self.name} cannot be asked: {_our_fault(error)}")

    def _asks_in_vain(self, who: Hashable) -> bool:
        """Whether so many ids of `who` were unknown within this second that no more are asked for."""
        now = self._now()
        if now - self._in_vain_since >= 1:
            self._in_vain_since, self._in_vain = now, FairSlots(_MOST_UNKNOWN)
        return not self._in_vain.has_slot_for(who)


def _kept_seconds(found: Found) -> float:
    """How long it is taken to be so."""
    if found is None:
        return _NO_SECONDS
    return _FINDING_SECONDS if isinstance(found, str) else inf


def _our_fault(error: Exception) -> str:
    return f"a fault of sluicegate's own ({type(error).__name__} at {place_of(error)})"
