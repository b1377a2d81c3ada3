"""Looks at the files that a configuration names before anything depends on them."""

from collections.abc import Iterator
from datetime import UTC, datetime

from sluicegate.config.http_headers import headers_in
from sluicegate.config.model import Config
from sluicegate.config.otel import Otel
from sluicegate.config.password import PasswordUnreadable
from sluicegate.config.source import Problem, Source
from sluicegate.proxy.network.certificates import Flaw, files_for_server, flaws_of, tls_files
from sluicegate.proxy.process.rule_check import flaws_in_rules
from sluicegate.proxy.telemetry.extra import ExtraMissing, check_extra


def flaws_in(config: Config) -> Iterator[Flaw]:
    """About certificates, keys, files with secrets, what rules name (schemas, expressions), and what `otel` needs."""
    now = datetime.now(UTC)
    for files in tls_files(config):
        yield from flaws_of(files, now)
    sasl = config.upstream.sasl
    for secret in (None if sasl is None else sasl.current_password, config.admin.token_of_page):
        try:
            if secret is not None:
                secret.get()
        except PasswordUnreadable as error:
            yield Flaw(error.key, error.message)
    yield from flaws_in_rules(config)
    if config.otel is not None:
        yield from _flaws_in_otel(config.otel, now)


def _flaws_in_otel(otel: Otel, now: datetime) -> Iterator[Flaw]:
    """No receiver is asked."""
    try:
        check_extra()
    except ExtraMissing as error:
        yield Flaw("otel", str(error))
    try:
        if otel.headers_file is not None:
            headers_in(otel.current_headers.get())
    except (PasswordUnreadable, ValueError) as error:
        yield Flaw("otel.headers_file", error.message if isinstance(error, PasswordUnreadable) else str(error))
    if otel.tls is not None:
        yield from flaws_of(files_for_server("otel.tls", otel.tls), now)


def problem_of(flaw: Flaw, source: Source) -> Problem:
    """A flaw with the place that it is about."""
    path = tuple(int(part) if part.isdigit() else part for part in flaw.key.split("."))
    return Problem(source.key_of(path), source.place_of(path), flaw.message)
