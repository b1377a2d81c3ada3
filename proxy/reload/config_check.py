"""Checks the objects that a configuration names: certificates, secret files, schemas, expressions and entry points."""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

from sluicegate.config.disk.kept_files import ReadContent, read_current, read_kept
from sluicegate.config.files.source import Problem, Source
from sluicegate.config.loading import ConfigError, Loaded, load_file
from sluicegate.config.model import Config
from sluicegate.config.otel import Otel
from sluicegate.config.values.http import headers_in
from sluicegate.config.values.password import Password, PasswordUnreadable
from sluicegate.proxy.network.tls.certificates import Flaw, files_for_server, flaws_of, tls_files
from sluicegate.proxy.registry.aws_login import AWS_EXTRA
from sluicegate.proxy.registry.glue_folder import names_in_folder
from sluicegate.proxy.registry.registries import Registries
from sluicegate.proxy.registry.schema_files import SchemaFiles
from sluicegate.proxy.registry.schema_rules import SchemaRules
from sluicegate.proxy.rules_process.rules_process import RulesProcess
from sluicegate.proxy.telemetry import ExtraMissing, check_extra
from sluicegate.validation.from_keys import unusable_policies
from sluicegate.validation.rules.cel.runtime import ExpressionUnusable
from sluicegate.validation.rules.from_keys import parts_of
from sluicegate.validation.rules.rule import RuleUnusable


def flaws_in(config: Config, files: SchemaFiles | None = None) -> Iterator[Flaw]:
    """Yield problems with certificates, keys, secret files, objects that rules name, and the requirements of `otel`.

    `files` reads schemas.
    """
    yield from flaws_in_files(config)
    yield from _flaws_in_rules(config, None, files)
    if config.otel is not None:
        try:
            check_extra()
        except ExtraMissing as error:
            yield Flaw("otel", str(error))


def flaws_in_files(config: Config) -> Iterator[Flaw]:
    """Yield problems with current files that are not part of policies: certificates, keys, secrets and folders."""
    now = datetime.now(UTC)
    for tls in tls_files(config):
        yield from flaws_of(tls, now)
    sasl, token = config.upstream.sasl, config.admin.web_ui_token
    yield from _flaws_in_secrets((*(() if sasl is None else sasl.secrets), *(() if token is None else (token,))))
    if sasl is not None and sasl.oauth is not None and sasl.oauth.tls is not None:
        yield from flaws_of(files_for_server("upstream.sasl.oauth.tls", sasl.oauth.tls), now)
    yield from _flaws_in_registries(config)
    if config.otel is not None:
        yield from _flaws_in_otel(config.otel, now)


def flaws_in_policies(
    config: Config, process: RulesProcess | None = None, files: SchemaFiles | None = None
) -> Iterator[Flaw]:
    """Yield problems with schemas, expressions, entry points, sensitive fields, and registries' files.

    Registries' files are passwords and certificates. No requests are sent to registries. A registry's file may be
    missing if it has been read before. `process` compiles large schemas. If it is None, this process compiles them.
    `files` reads schemas.
    """
    yield from _flaws_in_rules(config, process, files)
    yield from _flaws_in_registries(config, read_kept)


def _flaws_in_rules(config: Config, process: RulesProcess | None, files: SchemaFiles | None) -> Iterator[Flaw]:
    schema_rules = SchemaRules(Registries().by_name(config.registries), process, files)
    for path, keys in config.sections_with_rules():
        place = ".".join(map(str, path))
        for i, rule in enumerate(keys.rules or ()):
            try:
                for _ in parts_of(rule, schema_rules):
                    pass
            except ExpressionUnusable as error:
                yield Flaw(f"{place}.rules.{i}.cel", f"rule {rule.name}: {error}")
            except RuleUnusable as error:
                yield Flaw(f"{place}.rules.{i}", f"rule {rule.name}: {error}")
    for unusable in unusable_policies(config, schema_rules):
        yield Flaw(".".join(map(str, unusable.path)), str(unusable))


def _flaws_in_registries(config: Config, read: ReadContent = read_current) -> Iterator[Flaw]:
    for name, registry in config.registries.items():
        yield from _flaws_in_secrets(registry.secrets(f"registries.{name}"), read)
        if registry.folder is not None and read is read_current:
            try:
                names_in_folder(Path(registry.folder))
            except OSError as error:
                yield Flaw(f"registries.{name}.folder", f"{registry.folder} cannot be read: {error.strerror}")
        if registry.region is not None and find_spec("awscrt") is None:
            yield Flaw(f"registries.{name}.region", f"it requires awscrt: {AWS_EXTRA}")
        for section, tls in registry.tls_sections(f"registries.{name}"):
            yield from flaws_of(files_for_server(section, tls), datetime.now(UTC), read)


def _flaws_in_secrets(secrets: Iterable[Password], read: ReadContent = read_current) -> Iterator[Flaw]:
    for secret in secrets:
        try:
            secret.get(read)
        except PasswordUnreadable as error:
            yield Flaw(error.key, error.message)


def check_policies(loaded: Loaded, process: RulesProcess | None = None) -> None:
    """Check the keys that take effect on a reload.

    `process` has the same meaning as in `flaws_in_policies`. The schema files are read into `loaded.source`. Raises
    ConfigError.
    """
    files = SchemaFiles(loaded.source.schemas, loaded.source.previous_schemas)
    problems = [problem_of(flaw, loaded.source) for flaw in flaws_in_policies(loaded.config, process, files)]
    if problems:
        raise ConfigError(problems)


def checked_policies(file: Path, environment: Mapping[str, str] = os.environ) -> Loaded:
    """Return a configuration file's content after compiling all its policies.

    Variables in `environment` override keys of the file. Every command that compiles policies without running the proxy
    reads its configuration here. Raises ConfigError.
    """
    loaded = load_file(file, environment)
    check_policies(loaded)
    return loaded


def problem_of(flaw: Flaw, source: Source) -> Problem:
    """Convert a flaw to a problem in the configuration file, with its place."""
    path = tuple(int(part) if part.isdigit() else part for part in flaw.key.split("."))
    return Problem(source.key_of(path), source.place_of(path), flaw.message)


def with_file_position(flaw: Flaw, source: Source) -> Flaw:
    """Return a flaw with its key as spelled in the file, and with its place before the message."""
    problem = problem_of(flaw, source)
    return replace(flaw, key=problem.key, message=f"{problem.place}: {flaw.message}")


def _flaws_in_otel(otel: Otel, now: datetime) -> Iterator[Flaw]:
    """Yield problems with the files of `otel`. No requests are sent to collectors."""
    try:
        if otel.headers_file is not None:
            headers_in(otel.current_headers.get(read_current))
    except (PasswordUnreadable, ValueError) as error:
        yield Flaw("otel.headers_file", error.message if isinstance(error, PasswordUnreadable) else str(error))
    if otel.tls is not None:
        yield from flaws_of(files_for_server("otel.tls", otel.tls), now)
