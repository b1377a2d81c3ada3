"""A schema registry for rules.

Cached schemas are returned immediately. Others are fetched while the caller waits briefly.

A registry that is rebuilt or restored assigns ids to other schemas. So schemas and subjects are looked up again: in the
background after `refresh_seconds`, and by a waiting caller after twice that time.

After a registry was late or failed, no caller waits until it responds again. A caller that needs a new result gets an
Outage immediately, and the last results stay in force. A bug in the proxy is an Outage too, so that a rule's
`on_outage` applies.

The thread that needs a schema compiles it. So a slow compilation neither counts as a failure of the registry nor delays
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
# The reason why a schema cannot be used may disappear, for example after a setting changes or a library is installed.
_UNUSABLE_SECONDS = 600.0
# A thread waits this long for another thread that compiles the same schema, because that thread may itself be queued.
_SHARED_SECONDS = 5.0
_REASON_BYTES = 1024
_MOST_SUBJECTS = 10_000
# A negative result expires soon, because producers use a schema right after they register it.
_NO_SECONDS = 1.0
# Clients can invent ids. So at most this many unknown ids are fetched per second, shared fairly among clients.
_MOST_UNKNOWN = 20
WAIT_SECONDS = 2.0

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _CachedSchema:
    """One cached schema.

    `fetched` is the registry's schema, a string that explains why it cannot be used, or None if it does not exist.
    `compiled` is the compiled schema, a string that explains why it cannot be compiled, or None if it has not been
    compiled. `compiled_at` is in monotonic seconds.
    """

    fetched: SchemaText | str | None
    compiled: RegisteredSchema | str | None = None
    compiled_at: float = 0.0


class SchemaRegistry:
    """One registry, for use by any thread except the event loop's.

    Each result is looked up again after `refresh_seconds`.
    """

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
        """Return a schema if it is cached and compiled. Otherwise return None."""
        known = self._schemas.get(schema_id)
        compiled = None if known is None else known[1].compiled
        return compiled if isinstance(compiled, RegisteredSchema) else None

    def schema(self, schema_id: SchemaId) -> RegisteredSchema:
        """Return a schema. May wait. Raises UnknownSchema, SchemaError and Outage."""
        try:
            return self._schema(schema_id)
        except (Outage, SchemaError, UnknownSchema, WaitNotAllowed):
            raise
        except Exception as error:
            raise self._outage_of_ours(error) from error

    def is_registered_under(self, schema_id: SchemaId, subject: str) -> bool:
        """Return whether a schema is registered under `subject`. May wait. Raises Outage."""
        try:
            return self._is_under(schema_id, subject)
        except (Outage, WaitNotAllowed):
            raise
        except Exception as error:
            raise self._outage_of_ours(error) from error

    def count_encrypted(self, part: EncryptedPart) -> None:
        """Count a record that is not validated, or only partly, because it is encrypted."""
        self._reports.count_encrypted(self.name, part.value)

    def close(self) -> None:
        """Close the connection and end the thread. Rules still in force may use the registry afterwards."""
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
                raise Outage(f"too many requests for schemas that are not in registry {self.name}; wait a second")
            cached = self._wait_for(wanted, lambda: self._learn_new_schema(schema_id, client))
        return self._usable(schema_id, self._compiled(schema_id, cached))

    def _current(self, wanted: Wanted, known: tuple[float, T], look_up: Callable[[], T]) -> T:
        """Return the cached result. If it is old and the registry responds, look it up again first."""
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
            return False  # no registry has such a subject, and no URL can contain it
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
                # this thread may be allowed to wait longer than the other one
                with suppress(NotInTime, WaitNotAllowed):
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
            del under_way, mine  # breaks the reference cycle of the future and its error's traceback

    def _compile(self, schema_id: SchemaId, text: SchemaText) -> RegisteredSchema | str:
        try:
            made = self._compiler(text)
        except (Outage, WaitNotAllowed):
            raise
        except SchemaUnusable as error:
            reason = str(error)
        except Exception as error:  # a bug in the compiler or the proxy, so this schema would fail again
            self._reports.fault(self.name, error)
            reason = _our_fault(error)
        else:
            found = RegisteredSchema(text.language, made.content, text.rules)
            self._keep(schema_id, text, found, made.size)
            return found
        self._keep(schema_id, text, reason, _REASON_BYTES)
        return reason

    def _keep(self, schema_id: SchemaId, text: SchemaText, compiled: RegisteredSchema | str, size: int) -> None:
        """Cache a compiled schema, unless a lookup has found a different schema in the meantime."""
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
        """Fetch a schema and cache it. If its text is unchanged, it stays compiled."""
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
        # if this thread must not wait, a waiting thread makes the request in its client's turn
        self._wait_budget.require_waiting_allowed()
        try:
            return self._wait_budget.wait(self._fetch(wanted, look_up), self._wait_seconds)
        except TooManyFetches:
            raise Outage(f"registry {self.name} receives more requests than it handles") from None
        except WaitBudgetExceeded:
            raise Outage(f"the look-ups in registry {self.name} took longer than a request can wait") from None
        except NotInTime:
            # The registry is still busy with earlier requests.
            if self._now() - self._breaker.started_at < self._wait_seconds / 2:
                raise Outage(f"registry {self.name} receives more requests than it handles") from None
            reason = f"no response within {self._wait_seconds:g} s"
            self._breaker.request_failed(reason)
            self._failures.failed(wanted, look_up, reason)
            raise self._unavailable(reason) from None
        except RegistryFailed as error:
            raise self._unavailable(str(error)) from error

    def failing(self) -> dict[LookUp, str]:
        """Return the kinds of lookup that keep failing, each with the newest reason."""
        return self._failures.lasting()

    def repeat_failed(self) -> None:
        """Repeat a failed lookup if its pause is over, so that an outage can end without a client. Never waits."""
        for wanted, look_up in self._failures.look_ups():
            self._probe(wanted, look_up)

    def _unavailable(self, reason: str) -> RegistryOutage:
        return RegistryOutage(f"registry {self.name} is unavailable: {reason}", self.name)

    def _probe(self, wanted: Wanted, look_up: Callable[[], T]) -> None:
        """Start the wanted lookup to test whether the registry responds again, at most once per pause."""
        if not self._breaker.blocks_requests and self._fetcher.is_idle:
            with suppress(TooManyFetches):
                self._fetch(wanted, look_up)

    def _fetch(self, wanted: Wanted, look_up: Callable[[], T]) -> "Future[T]":
        """Start a lookup in the fetcher's thread. Raises TooManyFetches."""

        def track_look_up() -> T:
            try:
                result = self._tracked(look_up)
            except RegistryFailed as error:
                self._failures.failed(wanted, look_up, str(error))
                raise
            self._failures.succeeded(wanted[0])
            return result

        return self._fetcher.run(wanted, track_look_up)

    def _tracked(self, look_up: Callable[[], T]) -> T:
        """Run a lookup in the fetcher's thread and report its outcome to the breaker."""
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
        """Return whether `client` has used its share of this second's lookups of unknown ids."""
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
    return f"internal error in sluicegate ({type(error).__name__} at {place_of(error)})"
