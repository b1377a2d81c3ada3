"""A relative file name is relative to the folder of the file that contains it, for every key and command."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sluicegate.config.keys import each_key_of, item_of, section_of
from sluicegate.config.loading import load_file
from sluicegate.config.model import Config
from tests.broker.proxy_process import COMMAND

_HEAD = "upstream: {bootstrap: ['127.0.0.1:1']}\nlisten: {bootstrap: '127.0.0.1:2'}\n"
_SCHEMA = "rules: [{name: r, value: {schema: {format: json, file: own.json}}}]"
KEYS = {
    "listen.tls.certificate_file": "listen: {bootstrap: 'h:2', tls: {certificate_file: F, key_file: k}}",
    "listen.tls.key_file": "listen: {bootstrap: 'h:2', tls: {certificate_file: c, key_file: F}}",
    "listen.tls.key_password_file": "listen: {bootstrap: 'h:2', tls: "
    "{certificate_file: c, key_file: k, key_password_file: F}}",
    "listen.tls.client_ca_file": "listen: {bootstrap: 'h:2', tls: "
    "{certificate_file: c, key_file: k, client_auth: required, client_ca_file: F}}",
    "upstream.tls.ca_file": "upstream: {bootstrap: ['h:1'], tls: {ca_file: F}}",
    "upstream.tls.certificate_file": "upstream: {bootstrap: ['h:1'], tls: {certificate_file: F, key_file: k}}",
    "upstream.tls.key_file": "upstream: {bootstrap: ['h:1'], tls: {certificate_file: c, key_file: F}}",
    "upstream.tls.key_password_file": "upstream: {bootstrap: ['h:1'], tls: "
    "{certificate_file: c, key_file: k, key_password_file: F}}",
    "upstream.sasl.password_file": "upstream: {bootstrap: ['h:1'], sasl: "
    "{mechanism: PLAIN, username: u, password_file: F}}",
    "upstream.sasl.token_file": "upstream: {bootstrap: ['h:1'], sasl: {mechanism: OAUTHBEARER, token_file: F}}",
    "upstream.sasl.oauth.client_secret_file": "upstream: {bootstrap: ['h:1'], sasl: {mechanism: OAUTHBEARER, oauth: "
    "{token_url: 'http://t', client_id: c, client_secret_file: F}}}",
    **{
        f"upstream.sasl.oauth.tls.{key}": "upstream: {bootstrap: ['h:1'], sasl: {mechanism: OAUTHBEARER, oauth: "
        f"{{token_url: 'https://t', client_id: c, client_secret: s, tls: {{{others}{key}: F}}}}}}}}"
        for key, others in {
            "ca_file": "",
            "certificate_file": "key_file: k, ",
            "key_file": "certificate_file: c, ",
            "key_password_file": "certificate_file: c, key_file: k, ",
        }.items()
    },
    "admin.token_file": "admin: {token_file: F}",
    "registries.r.password_file": "registries: {r: {url: 'http://h', username: u, password_file: F}}",
    "registries.r.folder": "registries: {r: {type: glue, folder: F}}",
    "registries.r.token_file": "registries: {r: {url: 'http://h', token_file: F}}",
    "registries.r.oauth.client_secret_file": "registries: {r: {url: 'http://h', oauth: "
    "{token_url: 'http://h', client_id: c, client_secret_file: F}}}",
    "registries.r.oauth.tls.ca_file": "registries: {r: {url: 'http://h', oauth: "
    "{token_url: 'https://h', client_id: c, client_secret: s, tls: {ca_file: F}}}}",
    "registries.r.oauth.tls.certificate_file": "registries: {r: {url: 'http://h', oauth: "
    "{token_url: 'https://h', client_id: c, client_secret: s, tls: {certificate_file: F, key_file: k}}}}",
    "registries.r.oauth.tls.key_file": "registries: {r: {url: 'http://h', oauth: "
    "{token_url: 'https://h', client_id: c, client_secret: s, tls: {certificate_file: c, key_file: F}}}}",
    "registries.r.oauth.tls.key_password_file": "registries: {r: {url: 'http://h', oauth: "
    "{token_url: 'https://h', client_id: c, client_secret: s, "
    "tls: {certificate_file: c, key_file: k, key_password_file: F}}}}",
    "registries.r.tls.ca_file": "registries: {r: {url: 'https://h', tls: {ca_file: F}}}",
    "registries.r.tls.certificate_file": "registries: {r: {url: 'https://h', tls: {certificate_file: F, key_file: k}}}",
    "registries.r.tls.key_file": "registries: {r: {url: 'https://h', tls: {certificate_file: c, key_file: F}}}",
    "registries.r.tls.key_password_file": "registries: {r: {url: 'https://h', tls: "
    "{certificate_file: c, key_file: k, key_password_file: F}}}",
    "otel.headers_file": "otel: {endpoint: 'http://h', headers_file: F}",
    "otel.tls.ca_file": "otel: {endpoint: 'https://h', tls: {ca_file: F}}",
    "otel.tls.certificate_file": "otel: {endpoint: 'https://h', tls: {certificate_file: F, key_file: k}}",
    "otel.tls.key_file": "otel: {endpoint: 'https://h', tls: {certificate_file: c, key_file: F}}",
    "otel.tls.key_password_file": "otel: {endpoint: 'https://h', tls: "
    "{certificate_file: c, key_file: k, key_password_file: F}}",
    "topics.0.rules.0.key.schema.file": "topics: [{match: a, rules: "
    "[{name: r, key: {schema: {format: json, file: F}}}]}]",
    "topics.0.rules.0.value.schema.file": "topics: [{match: a, rules: "
    "[{name: r, value: {schema: {format: json, file: F}}}]}]",
    "defaults.rules.0.key.schema.file": "defaults: {rules: [{name: r, key: {schema: {format: json, file: F}}}]}",
    "defaults.rules.0.value.schema.file": "defaults: {rules: [{name: r, value: {schema: {format: json, file: F}}}]}",
    "floor.0.rules.0.key.schema.file": "floor: [{match: a, rules: "
    "[{name: r, key: {schema: {format: json, file: F}}}]}]",
    "topics.0.sensitive.0.key_file": "topics: [{match: a, sensitive: "
    "[{name: s, action: hash, fields: [a], key_file: F}]}]",
    "defaults.sensitive.0.key_file": "defaults: {sensitive: [{name: s, action: hash, key_file: F, fields: [a]}]}",
    "topics.0.sensitive.0.schema.file": "topics: [{match: a, sensitive: "
    "[{name: s, action: mask, fields: [a], schema: {format: avro, file: F}}]}]",
    "defaults.sensitive.0.schema.file": "defaults: {sensitive: "
    "[{name: s, action: mask, fields: [a], schema: {format: avro, file: F}}]}",
    "floor.0.rules.0.value.schema.file": "floor: [{match: a, rules: "
    "[{name: r, value: {schema: {format: json, file: F}}}]}]",
}
_BASE_IS_THE_PROCESS = {"state.snapshot_file", "violations.file"}  # the schema files exist


def keys_that_name_files(section: type[Any] = Config, before: str = "") -> Iterator[str]:
    for key in each_key_of(section):
        name, kind = f"{before}{key.name}", key.annotation
        inner = section_of(kind) or section_of(item_of(kind))
        if inner is not None:
            among = "" if section_of(kind) is not None else "r." if key.name == "registries" else "0."
            yield from keys_that_name_files(inner, f"{name}.{among}")
        elif key.name in ("file", "folder") or key.name.endswith("_file"):
            yield name


def test_all_file_name_keys_are_covered_by_the_relative_name_tests() -> None:
    assert set(keys_that_name_files()) - _BASE_IS_THE_PROCESS == set(KEYS)


def _value_at(config: Any, key: str) -> Any:
    for part in key.split("."):
        if part == "r" or part.isdigit():
            config = config[part if part == "r" else int(part)]
        else:
            (attribute,) = (key.attribute for key in each_key_of(type(config)) if key.name == part)
            config = getattr(config, attribute)
    return config


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(("given", "expected"), [("sub/x", "{folder}/sub/x"), ("/etc/x", "/etc/x")])
def test_relative_file_name_resolves_against_the_configuration_folder(
    key: str, given: str, expected: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    file = tmp_path / "c.yaml"
    section = KEYS[key].partition(":")[0]
    head = "".join(line + "\n" for line in _HEAD.splitlines() if not line.startswith(f"{section}:"))
    file.write_text(head + KEYS[key].replace(": F", f": {given}"))

    config = load_file(file, {}).config

    assert _value_at(config, key) == expected.format(folder=tmp_path)


def test_relative_file_name_in_a_topic_file_resolves_against_its_folder(tmp_path: Path) -> None:
    for team in ("one", "two"):
        (tmp_path / team).mkdir()
        (tmp_path / team / "t.yaml").write_text(f"topics: [{{match: {team}, {_SCHEMA}}}]")
    main = tmp_path / "c.yaml"
    main.write_text(_HEAD + f"topic_files: '*/t.yaml'\ntopics: [{{match: own, {_SCHEMA}}}]\n")

    topics = load_file(main, {}).config.topics

    assert [_value_at(topic, "rules.0.value.schema.file") for topic in topics] == [
        f"{tmp_path}/own.json",
        f"{tmp_path}/one/own.json",
        f"{tmp_path}/two/own.json",
    ]


def test_relative_file_name_in_a_linked_file_resolves_against_the_link_folder(tmp_path: Path) -> None:
    """In a ConfigMap that Kubernetes mounts, the file and the schemas next to it are symbolic links."""
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data" / "c.yaml").write_text(_HEAD + f"topics: [{{match: own, {_SCHEMA}}}]")
    (tmp_path / "c.yaml").symlink_to("..data/c.yaml")

    config = load_file(tmp_path / "c.yaml", {}).config

    assert _value_at(config, "topics.0.rules.0.value.schema.file") == f"{tmp_path}/own.json"


def test_relative_name_in_environment_resolves_against_the_configuration_folder(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text(_HEAD)

    config = load_file(tmp_path / "c.yaml", {"SLUICEGATE__ADMIN__TOKEN_FILE": "token"}).config

    assert config.admin.token_file == f"{tmp_path}/token"


@pytest.mark.long
def test_check_try_and_explain_resolve_files_the_same_from_any_folder(tmp_path: Path) -> None:
    (tmp_path / "team").mkdir()
    (tmp_path / "team" / "t.yaml").write_text(f"topics: [{{match: a, {_SCHEMA}}}]")
    (tmp_path / "team" / "own.json").write_text('{"type": "integer"}')
    (tmp_path / "c.yaml").write_text(_HEAD + "topic_files: team/t.yaml\n")

    def exit_code(*command: str) -> int:
        return subprocess.run([COMMAND, *command], cwd="/", capture_output=True, check=False).returncode

    file = os.fspath(tmp_path / "c.yaml")
    assert exit_code("check", file) == 0
    assert exit_code("explain", file, "a") == 0
    assert exit_code("try", file, "--topic", "a", "--value", "5") == 0
    assert exit_code("try", file, "--topic", "a", "--value", '"text"') == 1
