"""A schema registry for rules: cached schemas are returned at once, others are fetched while the caller waits briefly.

Schemas and subjects are looked up again in the background after `refresh_seconds`, and by a waiting caller after twice
that time: a registry that is rebuilt or restored gives the same id to another schema. After a registry was late or has
failed, no caller waits until it responds again: a caller that needs something new gets an Outage at once, the last
results stay in force. A fault of our own is an Outage too, so that a rule's `on_outage` applies. The thread that needs
a schema compiles it, so a schema that takes long to compile neither counts as a failure of the registry nor delays
other ids.
"""

from collections.abc import Callable, Hashable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTime
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import TypeVar

from sluicegate.proxy.registry.background_fetcher import BackgroundFetcher, TooManyFetches
from sluicegate.proxy.registry.breaker import Breaker, NoRegistryEvents, RegistryEvents
from sluicegate.proxy.registry.confluent_api import ConfluentApi, RegistryClient, SchemaApi, SchemaText
from sluicegate.proxy.registry.failed_look_ups import FailedLookUps, LookUp, Wanted
from sluicegate.proxy.registry.http import RegistryFailed
from sluicegate.proxy.registry.recent import RecentCache
from sluicegate.proxy.registry.schema_compiler import SchemaCompiler, compile_inline
from sluicegate.proxy.scheduling.fair_sharing import FairSlots
from sluicegate.proxy.scheduling.wait_budget import WaitBudget, WaitBudgetExceeded, WaitNotAllowed
from sluicegate.validation.rules.custom_rule import place_of
from sluicegate.validation.rules.rule import Outage, SchemaError
from sluicegate.validation.rules.schemas.content import SchemaUnusable
from sluicegate.validation.rules.schemas.framing import ConfluentFraming, SchemaFraming
from sluicegate.validation.rules.schemas.registered_schema import (
    EncryptedPart,
    RegisteredSchema,
    RegistryOutage,
    UnknownSchema,
)
from sluicegate.validation.rules.schemas.wire_format import SchemaId

_MOST_SCHEMAS = 1000
_MOST_SCHEMA_BYTES = 24 << 20
# The reason why a schema cannot be used may go away: a setting changes, or a library is installed.
_UNUSABLE_SECONDS = 600.0
# How long a thread waits for another thread that compiles the same schema and may itself wait for its turn.
_SHARED_SECONDS = 5.0
_REASON_BYTES = 1024
_MOST_SUBJECTS = 10_000
# A negative result expires soon: producers use a schema right after they have registered it.
_NO_SECONDS = 1.0
# Clients can invent ids: at most this many unknown ids are fetched in a second, shared fairly among clients.
_MOST_UNKNOWN = 20
WAIT_SECONDS = 2.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _CachedSchema:
    """`fetched`: what the registry sent, or why it cannot be used; None: it does not exist. `compiled`: the schema, or
    why it cannot be compiled; None: not yet. `compiled_at`: s, monotonic.
    """

    fetched: SchemaText | str | None
    compiled: RegisteredSchema | str | None = None
    compiled_at: float = 0.0


class SchemaRegistry:
    """One registry, for any thread but the event loop's. `refresh_seconds`: when a result is looked up again."""

    def __init__(
        self,
        name: str,
        http: RegistryClient,
        refresh_seconds: float = 60.0,
        wait_seconds: float = WAIT_SECONDS,
        now: Callable[[], float] = monotonic,
        wait_budget: WaitBudget | None = None,
        reports: RegistryEvents | None = None,
        compiler: SchemaCompiler = compile_inline,
        api: SchemaApi | None = None,
        framing: SchemaFraming | None = None,
    ) -> None:
        self.name = name
        self.framing = framing if framing is not None else ConfluentFraming()
        self._http = http
        self._api = api if api is not None else ConfluentApi()
        self._refresh_seconds = refresh_seconds
        self._wait_seconds = wait_seconds
        self._now = now
        self._wait_budget = wait_budget if wait_budget is not None else WaitBudget()
        self._fetcher = BackgroundFetcher(f"registry {name}")
        self._compiler = compiler
        self._compiling: dict[tuple[SchemaId, SchemaText], Future[RegisteredSchema | str]] = {}
        self._schemas: RecentCache[SchemaId, _CachedSchema] = RecentCache(_MOST_SCHEMAS, _MOST_SCHEMA_BYTES)
        self._subjects: RecentCache[tuple[SchemaId, str], bool] = RecentCache(_MOST_SUBJECTS)
        self._reports = reports if reports is not None else NoRegistryEvents()
        self._breaker = Breaker(name, now, self._reports)
        self._failures = FailedLookUps(now)
        self._unknown_since = 0.0
        self._unknown_slots = FairSlots(_MOST_UNKNOWN)

    def known(self, schema_id: SchemaId) -> RegisteredSchema | None:
        """Return a schema if it is cached and compiled, otherwise None."""
        known = self._schemas.get(schema_id)
        compiled = None if known is None else known[1].compiled
        return compiled if isinstance(compiled, RegisteredSchema) else None

    def schema(self, schema_id: SchemaId) -> RegisteredSchema:
        """Return a schema; may wait. Raises UnknownSchema, SchemaError and Outage."""
        try:
            return self._schema(schema_id)
        except (Outage, SchemaError, UnknownSchema, WaitNotAllowed):
            raise
        except Exception as error:
            raise self._outage_of_ours(error) from error

    def is_registered_under(self, schema_id: SchemaId, subject: str) -> bool:
        """Return whether a schema is registered under `subject`; may wait. Raises Outage."""
        try:
            return self._is_under(schema_id, subject)
        except (Outage, WaitNotAllowed):
            raise
        except Exception as error:
            raise self._outage_of_ours(error) from error

    def passed_over(self, part: EncryptedPart) -> None:
        """Count a record that is encrypted, and so not validated, in whole or in part."""
        self._reports.passed_over(self.name, part.value)

    def close(self) -> None:
        """Close the connection and end the thread. A rulebook still in force may use the registry afterwards."""
        with suppress(TooManyFetches):
            self._fetcher.run("close", self._http.close)
        self._fetcher.close()

    def _schema(self, schema_id: SchemaId) -> RegisteredSchema:
        wanted = LookUp.SCHEMA, schema_id
        known = self._schemas.get(schema_id)
        if known is not None and known[1].fetched is not None:
            cached = self._current(wanted, known, lambda: self._learn_schema(schema_id))
        elif known is not None and self._now() - known[0] < _NO_SECONDS:
            cached = known[1]
        else:
            client = self._wait_budget.on_behalf_of
            if self._has_too_many_unknown(client):
                raise Outage(f"too many requests for schemas that registry {self.name} does not have; wait a second")
            cached = self._wait_for(wanted, lambda: self._learn_new_schema(schema_id, client))
        return self._usable(schema_id, self._compiled(schema_id, cached))

    def _current(self, wanted: Wanted, known: tuple[float, T], look_up: Callable[[], T]) -> T:
        """Return a cached result, or that of a new look-up if it is old and the registry responds."""
        learnt, cached = known
        age = self._now() - learnt
        if age >= 2 * self._refresh_seconds:
            with suppress(Outage):
                return self._wait_for(wanted, look_up)
        elif age >= self._refresh_seconds and not self._breaker.blocks_requests:
            with suppress(TooManyFetches):
                self._fetch(wanted, look_up)
        return cached

    def _is_under(self, schema_id: SchemaId, subject: str) -> bool:
        if not _is_encodable(subject):
            return False  # no registry has such a subject, and no URL can name it
        key = schema_id, subject
        wanted = LookUp.SUBJECT, key
        known = self._subjects.get(key)
        if known is not None and known[1]:
            return self._current(wanted, known, lambda: self._learn_subject(key))
        if known is not None and self._now() - known[0] < _NO_SECONDS:
            return False
        return self._wait_for(wanted, lambda: self._learn_subject(key))

    def _compiled(self, schema_id: SchemaId, cached: _CachedSchema) -> RegisteredSchema | str | None:
        """Compile a schema, or wait for the thread that compiles it. Raises Outage and WaitNotAllowed."""
        text, compiled = cached.fetched, cached.compiled
        if not isinstance(text, SchemaText):
            return text
        if isinstance(compiled, RegisteredSchema):
            return compiled
        if compiled is not None and self._now() - cached.compiled_at < _UNUSABLE_SECONDS:
            return compiled
        self._wait_budget.require_waiting_allowed()
        mine: Future[RegisteredSchema | str] = Future()
        under_way = self._compiling.setdefault((schema_id, text), mine)
        try:
            if under_way is not mine:
                with suppress(NotInTime, WaitNotAllowed):  # the other thread may wait less long than this one
                    return self._wait_budget.wait_uncounted(under_way, _SHARED_SECONDS)
            found = self._compile(schema_id, text)
            mine.set_result(found)
            return found
        except BaseException as error:
            mine.set_exception(error)
            raise
        finally:
            if under_way is mine:
                del self._compiling[schema_id, text]
            del under_way, mine  # otherwise they and the traceback of their error keep each other

    def _compile(self, schema_id: SchemaId, text: SchemaText) -> RegisteredSchema | str:
        try:
            made = self._compiler(text)
        except (Outage, WaitNotAllowed):
            raise
        except SchemaUnusable as error:
            reason = str(error)
        except Exception as error:  # a fault of a compiler or of ours: this schema fails the same way again
            self._reports.fault(self.name, error)
            reason = _our_fault(error)
        else:
            found = RegisteredSchema(text.language, made.content, text.rules)
            self._keep(schema_id, text, found, made.size)
            return found
        self._keep(schema_id, text, reason, _REASON_BYTES)
        return reason

    def _keep(self, schema_id: SchemaId, text: SchemaText, compiled: RegisteredSchema | str, size: int) -> None:
        """Cache a result of compiling, unless a look-up has found another text meanwhile."""
        known = self._schemas.get(schema_id)
        fetched_at, latest = (self._now(), text) if known is None else (known[0], known[1].fetched)
        if latest == text:
            cached = _CachedSchema(text, compiled, self._now())
            self._schemas.learn(schema_id, fetched_at, cached, text.size + size)

    def _usable(self, schema_id: SchemaId, found: RegisteredSchema | str | None) -> RegisteredSchema:
        if found is None:
            raise UnknownSchema
        if isinstance(found, str):
            raise SchemaError(f"schema {schema_id} of registry {self.name} cannot be used: {found}")
        return found

    def _learn_new_schema(self, schema_id: SchemaId, client: Hashable) -> _CachedSchema:
        cached = self._learn_schema(schema_id)
        if cached.fetched is None:
            self._unknown_slots.take(client)
        return cached

    def _learn_schema(self, schema_id: SchemaId) -> _CachedSchema:
        """Fetch a schema and cache it; one with the same text stays compiled."""
        fetched = self._api.fetch_schema(self._http, schema_id)
        known = self._schemas.get(schema_id)
        cached = None if known is None else known[1]
        if cached is not None and cached.fetched == fetched:
            self._schemas.confirm(schema_id, self._now())
        else:
            if cached is not None and isinstance(cached.fetched, SchemaText):
                self._reports.changed(self.name, str(schema_id), is_absent=fetched is None)
            cached = _CachedSchema(fetched)
            size = fetched.size if isinstance(fetched, SchemaText) else _REASON_BYTES
            self._schemas.learn(schema_id, self._now(), cached, size)
        return cached

    def _learn_subject(self, key: tuple[SchemaId, str]) -> bool:
        result = self._api.is_registered_under(self._http, *key)
        self._subjects.learn(key, self._now(), result)
        return result

    def _wait_for(self, wanted: Wanted, look_up: Callable[[], T]) -> T:
        if self._breaker.has_last_failed:
            self._probe(wanted, look_up)
            raise self._unavailable(self._breaker.failure)
        self._wait_budget.require_waiting_allowed()  # otherwise a waiting thread makes the request in its client's turn
        try:
            return self._wait_budget.wait(self._fetch(wanted, look_up), self._wait_seconds)
        except TooManyFetches:
            raise Outage(f"registry {self.name} receives more requests than it handles") from None
        except WaitBudgetExceeded:
            raise Outage(f"the look-ups in registry {self.name} take longer than one request may wait") from None
        except NotInTime:
            # The registry responds to other requests that came first.
            if self._now() - self._breaker.started_at < self._wait_seconds / 2:
                raise Outage(f"registry {self.name} receives more requests than it handles") from None
            reason = f"no response within {self._wait_seconds:g} s"
            self._breaker.request_failed(reason)
            self._failures.failed(wanted, look_up, reason)
            raise self._unavailable(reason) from None
        except RegistryFailed as error:
            raise self._unavailable(str(error)) from error

    def failing(self) -> dict[LookUp, str]:
        """Return the kinds of look-ups that have failed for a while, each with the newest reason."""
        return self._failures.lasting()

    def repeat_failed(self) -> None:
        """Repeat a failed look-up if its pause is over, so that an outage ends without a client. Never waits."""
        for wanted, look_up in self._failures.look_ups():
            self._probe(wanted, look_up)

    def _unavailable(self, reason: str) -> RegistryOutage:
        return RegistryOutage(f"registry {self.name} is unavailable: {reason}", self.name)

    def _probe(self, wanted: Wanted, look_up: Callable[[], T]) -> None:
        """Find out whether the registry responds again: start the wanted look-up, one after each pause."""
        if not self._breaker.blocks_requests and self._fetcher.is_idle:
            with suppress(TooManyFetches):
                self._fetch(wanted, look_up)

    def _fetch(self, wanted: Wanted, look_up: Callable[[], T]) -> "Future[T]":
        """Start a look-up in the fetcher's thread. Raises TooManyFetches."""

        def tracked() -> T:
            try:
                result = self._tracked(look_up)
            except RegistryFailed as error:
                self._failures.failed(wanted, look_up, str(error))
                raise
            self._failures.succeeded(wanted[0])
            return result

        return self._fetcher.run(wanted, tracked)

    def _tracked(self, look_up: Callable[[], T]) -> T:
        """Run a look-up in the fetcher's thread and report its outcome to the breaker."""
        breaker = self._breaker
        if breaker.blocks_requests:
            raise RegistryFailed(breaker.failure)
        breaker.request_started()
        try:
            self._http.begin()
            result = look_up()
        except RegistryFailed as error:
            breaker.request_failed(str(error), error.retry_after_seconds)
            raise
        except Exception as error:
            self._reports.fault(self.name, error)
            breaker.request_failed(_our_fault(error))
            raise RegistryFailed(breaker.failure) from error
        breaker.request_succeeded()
        return result

    def _outage_of_ours(self, error: Exception) -> Outage:
        self._reports.fault(self.name, error)
        return self._unavailable(_our_fault(error))

    def _has_too_many_unknown(self, client: Hashable) -> bool:
        """Return whether `client` has used its share of look-ups of unknown ids in this second."""
        now = self._now()
        if now - self._unknown_since >= 1:
            self._unknown_since, self._unknown_slots = now, FairSlots(_MOST_UNKNOWN)
        return not self._unknown_slots.has_slot_for(client)


def _is_encodable(subject: str) -> bool:
    try:
        subject.encode()
    except UnicodeEncodeError:
        return False
    return True


def _our_fault(error: Exception) -> str:
    return f"a fault of sluicegate's own ({type(error).__name__} at {place_of(error)})"
