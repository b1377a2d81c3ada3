"""Writes AsyncAPI documents, and validates records with the rules that the documents define for topics."""

from pathlib import Path

from sluicegate.config.loading import Loaded
from sluicegate.proxy.registry.schema_rules import SchemaRules
from sluicegate.validation.rules.from_keys import parts_of
from tests.config.contracts.written import load_texts, problems_of_texts
from tests.validation.rules.records import record

Header = tuple[bytes, bytes | None]
CONTRACTS = "contracts: '*.asyncapi.yaml'\n"

SHOP_3 = """asyncapi: 3.0.0
info: {title: Shop, version: 1.4.0, contact: {name: orders-team, email: orders@example.com}}
defaultContentType: application/json
servers: {live: {host: "kafka:9092", protocol: kafka-secure}}
channels:
  orders:
    address: orders.v1
    messages: {order: {$ref: "#/components/messages/order"}}
components:
  messages:
    order:
      traits: [{$ref: "#/components/messageTraits/common"}]
      bindings: {kafka: {key: {type: string, pattern: "^[0-9]+$", maxLength: 8}}}
      payload: {$ref: "#/components/schemas/order"}
  messageTraits:
    common:
      headers:
        type: object
        required: [tenant]
        properties:
          tenant: {type: string, pattern: "^[a-z]", minLength: 2, maxLength: 5}
          attempt: {type: integer}
          kind: {type: string, enum: [new, "a|b"]}
          ratio: {type: number}
          dry: {type: boolean}
          trace: {type: string, format: uuid}
  schemas:
    order:
      type: object
      required: [id, state]
      properties:
        id: {type: string, minLength: 1}
        state: {type: string, enum: [on, off]}
        lines: {type: array, items: {$ref: "#/components/schemas/line"}}
        $ref: {type: integer}
    line:
      type: object
      required: [sku]
      properties: {sku: {type: string}, parts: {type: array, items: {$ref: "#/components/schemas/line"}}}
"""

SHOP_2 = """asyncapi: 2.6.0
info: {title: Shop, version: 1.4.0, contact: {name: orders-team, email: orders@example.com}}
defaultContentType: application/json
servers: {live: {url: "kafka:9092", protocol: kafka-secure}}
channels:
  orders.v1:
    publish: {message: {$ref: "#/components/messages/order"}}
    subscribe: {message: {oneOf: [{$ref: "#/components/messages/order"}]}}
""" + SHOP_3[SHOP_3.index("components:") :]  # fmt: skip


def channel_with(payload: str, more: str = "", version: str = "3.0.0") -> str:
    """Return a document of version 3 with the topic `t` and one message. `more` are further keys of the message."""
    return (
        f"asyncapi: {version}\ninfo: {{title: t, version: '1'}}\nservers: {{s: {{host: h, protocol: kafka}}}}\n"
        f"channels:\n  c:\n    address: t\n    messages:\n      m:\n        payload: {payload}\n        {more}\n"
    )


def load_document(folder: Path, document: str, text: str = CONTRACTS, **files: str) -> Loaded:
    """Write the document to `shop.asyncapi.yaml` and load a configuration with it. `files` are as in `load_texts`."""
    (folder / "shop.asyncapi.yaml").write_text(document)
    return load_texts(folder, text, **files)


def problems_of_document(folder: Path, document: str, text: str = CONTRACTS) -> list[str]:
    (folder / "shop.asyncapi.yaml").write_text(document)
    return problems_of_texts(folder, text)


class Validator:
    """Validates records by the rules of the first entry of a configuration."""

    def __init__(self, loaded: Loaded) -> None:
        maker = SchemaRules({})
        self._parts = [
            (rule.name, part) for rule in loaded.config.topics[0].rules or () for part in parts_of(rule, maker)
        ]

    def violated_names(
        self, value: bytes | None = None, key: bytes | None = None, headers: tuple[Header, ...] = ()
    ) -> list[str]:
        """Return the names of the rules that a record violates."""
        one = record(value, key, headers)
        return list(dict.fromkeys(name for name, part in self._parts if part.fault(one) is not None))
