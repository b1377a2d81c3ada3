"""A registry's responses are cached, even while it is unavailable. A stand-in responds as each test configures."""

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest

from sluicegate.proxy.registry.confluent_api import ConfluentApi
from sluicegate.proxy.registry.http import JsonResponse, RegistryFailed, ResponseTooLarge
from sluicegate.proxy.registry.schema_registry import SchemaRegistry
from sluicegate.proxy.scheduling.wait_budget import WaitBudget, WaitNotAllowed
from sluicegate.validation.rules.rule import Outage, SchemaError, StepBudget
from sluicegate.validation.rules.schemas.registered_schema import UnknownSchema
from tests.broker.eventually import eventually
from tests.clock import Clock

LONG = JsonResponse(200, {"schema": '"long"'})
BOOLEAN = JsonResponse(200, {"schema": '"boolean"'})
NOT_FOUND = JsonResponse(404, {"error_code": 40403})
GUID = UUID("12345678-1234-5678-1234-567812345678")


class ScriptedRegistry:
    """A registry with scripted responses by path. It raises exceptions, and waits for events before the next
    response."""

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.asked: list[str] = []
        self.gate: threading.Event | None = None

    def close(self) -> None:
        """Do nothing, because there is no connection."""

    def begin(self) -> None:
        """Do nothing, because there is no time limit."""

    def get(self, path: str) -> JsonResponse:
        self.asked.append(path)
        if self.gate is not None:
            self.gate.wait(30)
        answer = self.answers.get(path, NOT_FOUND)
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, JsonResponse)
        return answer

    def post(self, path: str, body: Any) -> JsonResponse:
        return self.get(f"POST {path}")


@pytest.fixture
def http() -> ScriptedRegistry:
    return ScriptedRegistry()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def registry(http: ScriptedRegistry, clock: Clock) -> SchemaRegistry:
    return SchemaRegistry("main", http, 60, 30, clock)


def test_schema_is_cached_for_refresh_seconds_and_then_refreshed_in_background(
    registry: SchemaRegistry, http: ScriptedRegistry, clock: Clock
) -> None:
    http.answers["/schemas/ids/7"] = LONG

    first = registry.schema(7)
    clock.now += 59
    assert registry.schema(7) is first
    assert http.asked == ["/schemas/ids/7"]

    clock.now += 2
    assert registry.schema(7) is first
    eventually(lambda: len(http.asked) == 2)
    assert registry.schema(7) is first, "the same text is not compiled again"


@pytest.mark.parametrize(("age", "is_seen_at_once"), [(61, False), (121, True)])
def test_schema_id_of_a_rebuilt_registry_resolves_to_the_new_schema(
    registry: SchemaRegistry, http: ScriptedRegistry, clock: Clock, age: float, is_seen_at_once: bool
) -> None:
    http.answers["/schemas/ids/7"] = LONG
    assert registry.schema(7).content.fault(b"\x02", StepBudget()) is None
    http.answers["/schemas/ids/7"] = BOOLEAN
    clock.now += age

    if is_seen_at_once:
        assert registry.schema(7).content.fault(b"\x02", StepBudget()) is not None
    registry.schema(7)
    eventually(lambda: registry.schema(7).content.fault(b"\x02", StepBudget()) is not None)
    assert registry.schema(7).content.fault(b"\x01", StepBudget()) is None


@pytest.mark.parametrize("answer", [LONG, BOOLEAN, NOT_FOUND])
def test_changed_condition_or_reference_of_a_schema_id_takes_effect(
    registry: SchemaRegistry, http: ScriptedRegistry, clock: Clock, answer: JsonResponse
) -> None:
    """This includes a reference that is permanently deleted and registered again."""
    named = [{"name": "b", "subject": "b", "version": 1}]
    rules = {"domainRules": [{"name": "c", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "expr": "true"}]}
    http.answers["/subjects/b/versions/1"] = JsonResponse(200, {"schema": '"int"'})
    http.answers["/schemas/ids/7"] = JsonResponse(200, {"schema": '"long"', "references": named, "ruleSet": rules})
    assert [each.name for each in registry.schema(7).rules.conditions] == ["c"]

    http.answers["/schemas/ids/7"] = answer
    clock.now += 121
    if answer is NOT_FOUND:
        with pytest.raises(UnknownSchema):
            registry.schema(7)
        http.answers["/schemas/ids/7"] = LONG
        clock.now += 1.1
    assert registry.schema(7).rules.conditions == ()


def test_cached_schema_applies_while_the_registry_does_not_respond(
    registry: SchemaRegistry, http: ScriptedRegistry, clock: Clock
) -> None:
    http.answers["/schemas/ids/7"] = LONG
    registry.schema(7)
    http.answers["/schemas/ids/7"] = RegistryFailed("gone")
    for _ in range(5):
        clock.now += 1000
        assert registry.schema(7).content.fault(b"\x02", StepBudget()) is None
    http.answers["/schemas/ids/7"] = BOOLEAN
    clock.now += 1000
    eventually(lambda: registry.schema(7).content.fault(b"\x02", StepBudget()) is not None)


def test_unknown_schema_id_is_requested_again_after_a_second(
    registry: SchemaRegistry, http: ScriptedRegistry, clock: Clock
) -> None:
    for _ in range(3):
        with pytest.raises(UnknownSchema):
            registry.schema(7)
    http.answers["/schemas/ids/7"] = LONG
    clock.now += 1.1

    assert registry.schema(7).content.fault(b"\x02", StepBudget()) is None
    assert len(http.asked) == 2


def test_registry_requests_for_unknown_schema_ids_are_limited_per_client(http: ScriptedRegistry, clock: Clock) -> None:
    wait_budget, lock = WaitBudget(), threading.Lock()
    registry = SchemaRegistry("main", http, 60, 30, clock, wait_budget)
    http.answers["/schemas/ids/5000"] = LONG

    def count_unknown_id_requests(who: str, first: int) -> int:
        """Look up 30 unknown ids for a client and return the number of requests."""
        with lock, wait_budget.limit_waiting(30, lock, who):
            for asked in range(30):
                try:
                    registry.schema(first + asked)
                except UnknownSchema:
                    continue
                except Outage as outage:
                    assert "too many requests for schemas" in str(outage)
                    return asked
        raise AssertionError("no look-up was rejected")

    assert [
        count_unknown_id_requests("a", 0),
        count_unknown_id_requests("a", 100),
        count_unknown_id_requests("b", 200),
    ] == [10, 0, 5]
    with lock, wait_budget.limit_waiting(30, lock, "c"):
        assert registry.schema(5000).content.fault(b"\x02", StepBudget()) is None
    assert len(http.asked) == 16

    clock.now += 1.1
    assert count_unknown_id_requests("a", 300) == 10


def test_look_up_without_permission_to_wait_sends_no_registry_request(http: ScriptedRegistry, clock: Clock) -> None:
    """A look-up for a client is requested when the client may wait."""
    wait_budget = WaitBudget()
    registry = SchemaRegistry("main", http, 60, 30, clock, wait_budget)
    with wait_budget.never_waiting(), pytest.raises(WaitNotAllowed):
        registry.schema(7)
    with wait_budget.never_waiting(), pytest.raises(WaitNotAllowed):
        registry.is_registered_under(7, "orders-value")
    assert http.asked == []


class SlowRegistry(ScriptedRegistry):
    """A registry whose responses take 0.1 s."""

    def get(self, path: str) -> JsonResponse:
        threading.Event().wait(0.1)
        return super().get(path)


def test_queueing_behind_other_registry_requests_causes_no_outage() -> None:
    http = SlowRegistry()
    ids = range(1, 18)
    http.answers = {f"/schemas/ids/{schema_id}": LONG for schema_id in ids}
    registry = SchemaRegistry("main", http, wait_seconds=1)

    def look_up_outcome(schema_id: int) -> str:
        try:
            return str(registry.schema(schema_id).content.fault(b"\x02", StepBudget()))
        except Outage as outage:
            return str(outage)

    with ThreadPoolExecutor(16) as threads:
        outcomes = set(threads.map(look_up_outcome, ids[:-1]))

    busy = "registry main receives more requests than it handles"
    assert outcomes == {"None", busy}
    later = iter(lambda: look_up_outcome(ids[-1]), "None")
    assert set(later) <= {busy}, "no registry request is needed"


def test_look_ups_fail_at_once_after_a_registry_failure(
    registry: SchemaRegistry, http: ScriptedRegistry, clock: Clock
) -> None:
    http.answers["/schemas/ids/1"] = LONG
    registry.schema(1)
    http.answers["/schemas/ids/2"] = RegistryFailed("connection rejected")
    with pytest.raises(Outage, match="registry main is unavailable: connection rejected"):
        registry.schema(2)

    # Within a second, no request is sent, and cached schemas stay usable.
    for schema_id in range(2, 50):
        with pytest.raises(Outage):
            registry.schema(schema_id)
    assert registry.schema(1).content.fault(b"\x02", StepBudget()) is None
    assert http.asked == ["/schemas/ids/1", "/schemas/ids/2"]

    # Later, one request finds the schema, and the next look-ups use the cached response.
    http.answers["/schemas/ids/2"] = LONG
    clock.now += 1.1
    with pytest.raises(Outage):
        registry.schema(2)
    eventually(lambda: _told(registry, 2))


def test_look_up_after_a_timeout_does_not_wait_again(http: ScriptedRegistry) -> None:
    http.gate = threading.Event()
    http.answers["/schemas/ids/1"] = http.answers["/schemas/ids/2"] = LONG
    registry = SchemaRegistry("main", http, wait_seconds=0.05)
    with pytest.raises(Outage, match=r"no response within 0\.05 s"):
        registry.schema(1)
    with pytest.raises(Outage):
        registry.schema(2)
    assert http.asked == ["/schemas/ids/1"]

    http.gate.set()

    eventually(lambda: _told(registry, 1))
    eventually(lambda: _told(registry, 2))


def test_unusable_schema_does_not_affect_other_schemas(registry: SchemaRegistry, http: ScriptedRegistry) -> None:
    http.answers["/schemas/ids/1"] = JsonResponse(200, {"schema": '"strang"'})
    http.answers["/schemas/ids/2"] = LONG

    with pytest.raises(SchemaError, match="cannot be used: the schema does not define the type strang"):
        registry.schema(1)
    assert registry.schema(2).content.fault(b"\x02", StepBudget()) is None


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (ResponseTooLarge("the server sent a response of more than 7 bytes"), "more than 7 bytes"),
        (JsonResponse(200, {"schema": '"long"', "references": [{"name": "b"}]}), "references cannot be read"),
        (JsonResponse(200, {"schema": '"long"', "references": 7}), "references cannot be read"),
        (
            JsonResponse(200, {"schema": '"long"', "references": [{"name": "b", "subject": "\ud800", "version": 1}]}),
            "which the registry does not have",
        ),
    ],
)
def test_schema_with_an_error_is_requested_again_and_affects_no_other(
    registry: SchemaRegistry, http: ScriptedRegistry, clock: Clock, found: object, words: str
) -> None:
    http.answers["/schemas/ids/1"] = found
    http.answers["/schemas/ids/2"] = LONG
    http.answers["/subjects/%3F/versions/1"] = JsonResponse(404, {"error_code": 40401})

    for _ in range(3):
        with pytest.raises(SchemaError, match=words):
            registry.schema(1)
        clock.now += 15
    assert http.asked.count("/schemas/ids/1") == 1
    assert registry.schema(2).content.fault(b"\x02", StepBudget()) is None

    http.answers["/schemas/ids/1"] = LONG
    clock.now += 121
    assert registry.schema(1).content.fault(b"\x02", StepBudget()) is None


def test_sends_no_request_for_schema_id_out_of_range(registry: SchemaRegistry, http: ScriptedRegistry) -> None:
    with pytest.raises(UnknownSchema):
        registry.schema(1 << 31)
    assert http.asked == []


@pytest.mark.parametrize(("wanted", "kept_quiet"), [(0, 1), (7, 7), (1e9, 30)])
def test_a_retry_after_header_is_respected(
    registry: SchemaRegistry, http: ScriptedRegistry, clock: Clock, wanted: float, kept_quiet: float
) -> None:
    http.answers["/schemas/ids/1"] = RegistryFailed("the registry limits the request rate (HTTP 429)", wanted)
    with pytest.raises(Outage, match="limits the request rate"):
        registry.schema(1)
    http.answers["/schemas/ids/1"] = LONG

    clock.now += kept_quiet - 0.1
    with pytest.raises(Outage):
        registry.schema(1)
    assert http.asked == ["/schemas/ids/1"]
    clock.now += 0.2
    eventually(lambda: _told(registry, 1))


def test_subjects_are_refreshed_in_the_background(
    registry: SchemaRegistry, http: ScriptedRegistry, clock: Clock
) -> None:
    path = "/schemas/ids/7/versions"
    http.answers[path] = JsonResponse(200, [{"subject": "orders-value", "version": 1}])
    assert registry.is_registered_under(7, "orders-value")
    assert not registry.is_registered_under(7, "others-value")
    asked = len(http.asked)
    assert registry.is_registered_under(7, "orders-value")
    assert not registry.is_registered_under(7, "others-value")
    assert len(http.asked) == asked

    clock.now += 61
    http.answers[path] = JsonResponse(200, [])
    assert registry.is_registered_under(7, "orders-value")
    eventually(lambda: not registry.is_registered_under(7, "orders-value"))

    http.answers[path] = JsonResponse(200, [{"subject": "orders-value", "version": 2}])
    clock.now += 1.1
    assert registry.is_registered_under(7, "orders-value")


def test_known_subject_stays_valid_during_a_registry_outage(
    registry: SchemaRegistry, http: ScriptedRegistry, clock: Clock
) -> None:
    path = "/schemas/ids/7/versions"
    http.answers[path] = JsonResponse(200, [{"subject": "orders-value", "version": 1}])
    assert registry.is_registered_under(7, "orders-value")
    http.answers[path] = RegistryFailed("gone")
    for _ in range(10):
        clock.now += 100
        assert registry.is_registered_under(7, "orders-value")
    eventually(lambda: len(http.asked) > 1)


def test_looks_up_schema_by_guid_and_its_subject_by_schema_text(
    registry: SchemaRegistry, http: ScriptedRegistry
) -> None:
    http.answers[f"/schemas/guids/{GUID}"] = LONG
    http.answers["POST /subjects/a%2Fb-value"] = JsonResponse(200, {"id": 7, "version": 1})

    assert registry.schema(GUID).content.fault(b"\x02", StepBudget()) is None
    assert registry.is_registered_under(GUID, "a/b-value")
    assert not registry.is_registered_under(GUID, "c-value")


def test_registry_without_guid_support_raises_a_schema_error(registry: SchemaRegistry, http: ScriptedRegistry) -> None:
    http.answers[f"/schemas/guids/{GUID}"] = JsonResponse(404, {"error_code": 0})
    http.answers["/schemas/ids/7"] = LONG

    with pytest.raises(SchemaError, match="not find schemas by GUID"):
        registry.schema(GUID)
    assert registry.schema(7).content.fault(b"\x02", StepBudget()) is None


@pytest.mark.parametrize(
    "answer",
    [
        JsonResponse(404, None),
        JsonResponse(404, {"error_code": 0}),
        JsonResponse(200, []),
        JsonResponse(200, {"schema": 7}),
        JsonResponse(429, None),
    ],
)
def test_invalid_registry_response_raises_an_outage(
    registry: SchemaRegistry, http: ScriptedRegistry, answer: JsonResponse
) -> None:
    http.answers["/schemas/ids/7"] = answer

    with pytest.raises(Outage):
        registry.schema(7)


def test_a_subject_with_an_unpaired_surrogate_causes_no_registry_request(
    registry: SchemaRegistry, http: ScriptedRegistry
) -> None:
    """The name of an Avro schema may have such an escape in its JSON, and then a record's subject has it too."""
    assert not registry.is_registered_under(7, "orders-\ud800")
    assert http.asked == []


def test_circular_references_are_resolved(registry: SchemaRegistry, http: ScriptedRegistry) -> None:
    around = [{"name": "b", "subject": "b", "version": 1}]
    http.answers["/schemas/ids/7"] = JsonResponse(200, {"schema": '"long"', "references": around})
    http.answers["/subjects/b/versions/1"] = JsonResponse(200, {"schema": '"int"', "references": around})

    assert registry.schema(7).content.fault(b"\x02", StepBudget()) is None


def _told(registry: SchemaRegistry, schema_id: int) -> bool:
    try:
        return registry.schema(schema_id).content.fault(b"\x02", StepBudget()) is None
    except Outage:
        return False


@pytest.mark.parametrize("listed", ["orders-value", ":.staging:orders-value"])
@pytest.mark.parametrize(("context", "query"), [("", ""), (".staging", "?subject=%3A.staging%3A")])
def test_subjects_are_matched_within_the_registry_context(
    http: ScriptedRegistry, clock: Clock, listed: str, context: str, query: str
) -> None:
    """Confluent's registry finds an id in every context, and lists subjects with their contexts."""
    registry = SchemaRegistry("main", http, 60, 30, clock, api=ConfluentApi(context))
    http.answers[f"/schemas/ids/7{query}"] = LONG
    http.answers[f"/schemas/ids/7/versions{query}"] = JsonResponse(200, [{"subject": listed, "version": 1}])

    assert registry.schema(7).content.fault(b"\x02", StepBudget()) is None
    assert registry.is_registered_under(7, "orders-value") is (listed != "orders-value" or not context)
    assert not registry.is_registered_under(7, "payments-value")


def test_a_reference_is_looked_up_in_the_context_of_its_schema(http: ScriptedRegistry, clock: Clock) -> None:
    registry = SchemaRegistry("main", http, 60, 30, clock, api=ConfluentApi(".staging"))
    named = [{"name": name, "subject": subject, "version": 1} for name, subject in [("A", "a"), ("B", ":.shared:b")]]
    http.answers["/schemas/ids/7?subject=%3A.staging%3A"] = JsonResponse(200, {"schema": '"long"', "references": named})
    for path in ("%3A.staging%3Aa", "%3A.shared%3Ab"):
        http.answers[f"/subjects/{path}/versions/1"] = JsonResponse(200, {"schema": '"int"'})

    assert registry.schema(7).content.fault(b"\x02", StepBudget()) is None
