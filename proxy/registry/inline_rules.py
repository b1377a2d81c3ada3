"""Compiles the rules inside schemas, with the clock of this machine as `now`."""

from time import time_ns

from sluicegate.validation.rules.schemas.content import Content, ExpressionOfSchema
from sluicegate.validation.rules.schemas.inline_rules import compiled_inline_rules


def inline_rules_of(content: Content, _text: str) -> ExpressionOfSchema:
    """Return the rules inside a schema (`CompileFor`). Raises RuleUnusable."""
    return compiled_inline_rules(content, time_ns)
