"""A sandbox's configuration consists of production's policies, with different addresses, logins and outputs."""

from pathlib import Path

import pytest

from sluicegate.config.loading import ConfigError, Loaded
from sluicegate.config.values.address import HostPort
from sluicegate.proxy.sandbox.policies import configuration_in, sandbox_configuration
from sluicegate.proxy.sandbox.reserved_ports import ReservedPorts

PRODUCTION = """
upstream:
  bootstrap: ["kafka.example.com:9093"]
  tls: {ca_file: /missing/ca.pem}
  sasl: {mechanism: PLAIN, username: proxy, password_file: /missing/password}
listen:
  bootstrap: "0.0.0.0:9092"
  broker_host: "broker-{node_id}.example.com"
  advertised_host: kafka.example.com
  tls: {certificate_file: /missing/server.pem, key_file: /missing/server.key}
admin: {listen: "0.0.0.0:9650", token_file: /missing/token}
violations: {topic: sluicegate.violations}
state: {topic: sluicegate.state}
otel: {endpoint: "https://collector.example.com:4318"}
workers: 4
log: {level: debug}
defaults: {message.timestamp.after.max.ms: 1h}
topics:
  - {match: "payments*", cleanup.policy: compact}
"""
ADDRESSES = {
    "upstream": {"bootstrap": ["127.0.0.1:9"], "topic_settings": False},
    "listen": {"bootstrap": "127.0.0.1:10", "broker_port_map": {1: 11}},
    "admin": {"listen": "127.0.0.1:0", "web_ui": False},
}


def sandboxed(folder: Path, text: str, environment: dict[str, str] | None = None) -> Loaded:
    file = folder / "sluicegate.yaml"
    file.write_text(text)
    return sandbox_configuration(file, environment or {}, ADDRESSES)


def test_production_addresses_credentials_and_outputs_are_replaced(tmp_path: Path) -> None:
    config = sandboxed(tmp_path, PRODUCTION).config

    assert config.upstream.bootstrap == (HostPort("127.0.0.1", 9),)
    assert (config.upstream.tls, config.upstream.sasl, config.listen.tls) == (None, None, None)
    assert (config.state, config.otel, config.violations.topic, config.workers) == (None, None, None, 1)
    assert (config.admin.listen, config.admin.token_file) == (HostPort("127.0.0.1", 0), None)


def test_production_policies_apply_with_their_file_positions(tmp_path: Path) -> None:
    loaded = sandboxed(tmp_path, PRODUCTION)

    assert [topic.match for topic in loaded.config.topics] == ["payments*"]
    assert loaded.config.defaults.after_max_ms == 3_600_000
    assert loaded.source.place_of(("topics", 0)).endswith("sluicegate.yaml:19")


def test_environment_overrides_only_policies(tmp_path: Path) -> None:
    environment = {
        "SLUICEGATE__DEFAULTS__MESSAGE_TIMESTAMP_AFTER_MAX_MS": "2h",
        "SLUICEGATE__UPSTREAM__SASL__USERNAME": "other",
        "SLUICEGATE__LISTEN__BOOTSTRAP": "127.0.0.1:12",
    }

    config = sandboxed(tmp_path, PRODUCTION, environment).config

    assert config.defaults.after_max_ms == 7_200_000
    assert (config.upstream.sasl, config.listen.bootstrap.port) == (None, 10)


def test_reports_contain_record_samples_except_for_topics_with_sensitive_fields(tmp_path: Path) -> None:
    sensitive = "sensitive: [{name: cards, action: reject, fields: [card]}]"
    topics = f"topics: [{{match: a}}, {{match: b, {sensitive}}}, {{match: c, samples: false}}]"
    plain = sandboxed(tmp_path, "topics: [{match: a}]").config
    config = sandboxed(tmp_path, topics).config

    assert (plain.defaults.samples, [topic.samples for topic in plain.topics]) == (True, [True])
    assert (config.defaults.samples, [topic.samples for topic in config.topics]) == (None, [True, None, False])


def test_invalid_policy_error_names_file_and_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as error:
        sandboxed(tmp_path, "topics:\n  - {match: a, cleanup.policy: compacted}\n")
    assert "sluicegate.yaml:2: topics[0].cleanup.policy" in str(error.value)


def test_folder_is_resolved_to_its_sluicegate_yaml(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"the folder has no sluicegate\.yaml"):
        configuration_in(tmp_path)
    file = tmp_path / "sluicegate.yaml"
    file.write_text(PRODUCTION)

    assert configuration_in(tmp_path) == configuration_in(file) == file


def test_reserved_port_stays_bound_until_it_is_used() -> None:
    ports = ReservedPorts("127.0.0.1")
    addresses = [ports.reserve() for _ in range(3)]
    try:
        assert len({address.port for address in addresses}) == 3
        listening = ports.bind(addresses[0])
        assert listening.getsockname()[1] == addresses[0].port
        listening.close()
    finally:
        ports.close()
    with ports.bind(addresses[1]) as again:  # the address is free again
        assert again.getsockname()[1] == addresses[1].port
