"""Each cache of the product is declared here, with its row in docs/caches.md, which states when its entries end."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.oracle.kafka_java import ROOT

_STATE = "what this process did or saw itself: the answer of no other system"
_FIXED = "computed from input that does not change, or kept as long as its schema or configuration"
_TOKENS = "Tokens of a token endpoint"
_OF_SCHEMAS = "Expressions, conditions, constraints and tags of a schema"

# The row of the page for each cache (file and name), or the reason why there is none.
_DECLARED = {
    "config/contracts/asyncapi/published_schemas.py _validator": _FIXED,
    "config/contracts/document.py _validator": _FIXED,
    "dead_letters/causes.py _cause": _FIXED,
    "dead_letters/groups.py group_id": _FIXED,
    "pipeline/jobs/audit/policies.py _schema_rules": "Schemas by id, with references and conditions",
    "pipeline/jobs/audit/values_as_json.py _forms": _OF_SCHEMAS,
    "pipeline/jobs/replay/decisions.py function_named": _FIXED,
    "pipeline/jobs/watch/producers.py _known": _STATE,
    "pipeline/kafka/cluster.py _leaders": "Leaders of partitions (pipeline)",
    "pipeline/kafka/tokens.py _granted": _TOKENS,
    "pipeline/source/tasks.py _freeze_once": _FIXED,
    "protocol/change_responses.py _created_settings": _FIXED,
    "protocol/described_settings.py _setting_program": _FIXED,
    "protocol/frame_pool.py _kept": _STATE,
    "protocol/response_walks.py _program": _FIXED,
    "protocol/response_walks.py codes_program": _FIXED,
    "proxy/cli/policy_tests.py _known": _FIXED,
    "proxy/cluster/topic_settings.py _known": "Topic settings of the cluster",
    "proxy/cluster/topic_settings.py _logged_reasons": _STATE,
    "proxy/cluster/topic_settings.py _set_aside": "Topic settings of the cluster",
    "proxy/live/traffic.py _counts": _STATE,
    "proxy/live/violation_groups.py _known": _STATE,
    "proxy/network/accept_filter.py _buckets": _STATE,
    "proxy/network/tls/contexts.py _names": _STATE,
    "proxy/registry/aws_login.py _credentials": "AWS credentials",
    "proxy/registry/recent.py _known": "Schemas by id, with references and conditions",
    "proxy/registry/registries.py _made": _FIXED,
    "proxy/registry/registries.py make_context": "Certificates, keys and CAs",
    "proxy/registry/registries.py TokenCache": _TOKENS,
    "proxy/registry/schema_registry.py _schemas": "Schemas by id, with references and conditions",
    "proxy/registry/schema_registry.py _subjects": "Subjects of a schema",
    "proxy/registry/schema_rules.py _contents": "Schemas from files",
    "proxy/registry/survey.py _known": "Newest schemas of subjects (`schema_unusable`)",
    "proxy/reporting/logs/aggregation.py _kinds": _STATE,
    "proxy/reporting/logs/connection_trace.py _in_flight": _STATE,
    "proxy/reporting/metrics/fair_label_slots.py _names_of": _STATE,
    "proxy/reporting/waiting_clients.py _retried_at": _STATE,
    "proxy/responses/broker_addresses.py _upstream": "Broker addresses",
    "proxy/responses/client_views.py _views": "Broker addresses by client",
    "proxy/responses/log_starts.py _known": "Log start offsets, and the broker's complaint about stand-ins",
    "proxy/responses/produce_responses.py _known_log_starts": _STATE,
    "proxy/responses/api_versions.py _remembered_versions": _FIXED,
    "proxy/responses/api_versions.py _unsupported_body": _FIXED,
    "proxy/responses/api_versions.py _with_old_produce": _FIXED,
    "proxy/responses/topic_names.py _known": "Topics that exist",
    "proxy/responses/topic_names.py _unknown_until": "Ids without a topic",
    "proxy/responses/topic_names.py by_id": "Topic names by topic id",
    "proxy/rules_process/evaluator.py _made": _OF_SCHEMAS,
    "proxy/session/broker_errors.py code_position": _FIXED,
    "proxy/session/pacing.py _lines": _STATE,
    "proxy/session/quotas/shares.py _known": _STATE,
    "proxy/telemetry/collector.py _tls": "Certificates, keys and CAs",
    "proxy/tokens/endpoint.py _tls": "Certificates, keys and CAs",
    "proxy/tokens/own_token.py TokenCache": _TOKENS,
    "proxy/tokens/own_token.py _granted": _TOKENS,
    "pipeline/kafka/tokens.py TokenCache": _TOKENS,
    "proxy/workers/worker_process.py _known": _STATE,
    "validation/dispositions/marks.py _known": _FIXED,
    "validation/previous_times.py _times": "Partition times for `fix: previous`",
    "validation/produce/conversion.py _remembered_formats": _FIXED,
    "validation/rules/avro/plan.py _known": _FIXED,
    "validation/rules/built_in.py _latest": "Times of producers (`monotonic`)",
    "validation/rules/cel/runtime.py _any_field": _FIXED,
    "validation/rules/cel/runtime.py _any_message": _FIXED,
    "validation/rules/cel/runtime.py runtime": _FIXED,
    "validation/rules/json/graph.py _known": _FIXED,
    "validation/rules/protobuf/cost.py _known": _FIXED,
    "validation/rules/protobuf/indexed_schema.py _contents": _OF_SCHEMAS,
    "validation/rules/protobuf/indexed_schema.py _forms": _OF_SCHEMAS,
    "validation/rules/schemas/field_tags.py _known": _OF_SCHEMAS,
    "validation/rules/schemas/registry_conditions.py _by_content": _OF_SCHEMAS,
    "validation/rules/schemas/schema_constraints.py _by_content": _OF_SCHEMAS,
    "validation/rules/schemas/rules_inside_schemas.py _by_content": _OF_SCHEMAS,
    "validation/rules/schemas/schema_expression.py _by_content": _OF_SCHEMAS,
    "validation/sensitive/avro_records.py _known": _OF_SCHEMAS,
    "validation/sensitive/protobuf_messages.py _known": _OF_SCHEMAS,
    "validation/sensitive/schema_values.py _by_content": _OF_SCHEMAS,
}
_DECORATORS = frozenset({"cache", "lru_cache", "functools.cache", "functools.lru_cache"})
_BOUNDED = re.compile(r"\b(\w*Cache|OrderedDict|Weak\w+Dictionary|lru_cache|cache)(\[[^(]*\])?\(")
# A plain dict counts as a cache because of its name.
_NAMES = re.compile("known|cache|made|kept|recent|latest|views|seen|contents|forms|upstream|leaders")


def caches_in(text: str) -> Iterator[str]:
    """Yield the names of cached functions, and of variables and attributes that hold a cache."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            if any(ast.unparse(each).partition("(")[0] in _DECORATORS for each in node.decorator_list):
                yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            name, value = ast.unparse(target), ast.unparse(node.value)
            is_dict = name.startswith("self.") and (value == "{}" or value.startswith("dict("))
            if _BOUNDED.match(value) or (is_dict and _NAMES.search(name)):
                yield name.removeprefix("self.")
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "TokenCache":
            yield "TokenCache"


def test_each_cache_is_declared_and_has_its_row() -> None:
    found = {
        f"{path.relative_to(ROOT)} {name}"
        for folder in ("protocol", "config", "validation", "dead_letters", "proxy", "pipeline")
        for path in Path(ROOT, folder).rglob("*.py")
        for name in caches_in(path.read_text())
    }
    rows = {line.split("|")[1].strip() for line in Path(ROOT, "docs/caches.md").read_text().splitlines() if "|" in line}

    assert found - _DECLARED.keys() == set(), "declare each here, and add a row to docs/caches.md"
    assert _DECLARED.keys() - found == set(), "these no longer exist, or were renamed"
    assert set(_DECLARED.values()) - rows <= {_STATE, _FIXED}, "docs/caches.md lacks these rows"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("@cache\ndef f(): ...", "f"),
        ("@functools.lru_cache(maxsize=8)\ndef f(): ...", "f"),
        ("class A:\n def __init__(self):\n  self._x: RecentCache[int, str] = RecentCache(1)", "_x"),
        ("class A:\n def __init__(self):\n  self._x = OrderedDict[int, int]()", "_x"),
        ("class A:\n def __init__(self):\n  self._known_ids: dict[int, str] = {}", "_known_ids"),
        ("f = lru_cache(maxsize=8)(g)", "f"),
        ("def f(): return Login(TokenCache(g))", "TokenCache"),
    ],
)
def test_the_check_finds_each_kind_of_cache(text: str, name: str) -> None:
    assert list(caches_in(text)) == [name]
