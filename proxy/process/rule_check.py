"""Makes each rule of a configuration once, before anything depends on it, and says which cannot be made."""

from collections.abc import Iterator
from datetime import UTC, datetime

from sluicegate.config.model import Config
from sluicegate.config.password import PasswordUnreadable
from sluicegate.proxy.network.certificates import Flaw, files_for_server, flaws_of
from sluicegate.proxy.registry.registries import Registries
from sluicegate.proxy.registry.schema_rules import SchemaRules
from sluicegate.validation.rules.expression_runtime import ExpressionUnusable
from sluicegate.validation.rules.from_keys import parts_of
from sluicegate.validation.rules.rule import RuleUnusable


def flaws_in_rules(config: Config) -> Iterator[Flaw]:
    """About schemas, expressions, entry points, and registries' passwords and certificates. No registry is asked."""
    schema_rules = SchemaRules(Registries().by_name(config.registries))
    sections = [("defaults", config.defaults), *((f"topics.{i}", topic) for i, topic in enumerate(config.topics))]
    for place, keys in sections:
        for i, rule in enumerate(keys.rules or ()):
            try:
                for _ in parts_of(rule, schema_rules):
                    pass
            except ExpressionUnusable as error:
                yield Flaw(f"{place}.rules.{i}.cel", f"rule {rule.name}: {error}")
            except RuleUnusable as error:
                yield Flaw(f"{place}.rules.{i}", f"rule {rule.name}: {error}")
    for name, registry in config.registries.items():
        try:
            registry.current_password.get()
        except PasswordUnreadable as error:
            yield Flaw(f"registries.{name}.password_file", error.message)
        if registry.tls is not None:
            yield from flaws_of(files_for_server(f"registries.{name}.tls", registry.tls), datetime.now(UTC))
