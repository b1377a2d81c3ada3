"""Looks at the files that a configuration names before anything depends on them."""

from collections.abc import Iterator
from datetime import UTC, datetime

from sluicegate.config.model import Config
from sluicegate.config.password import PasswordUnreadable
from sluicegate.config.source import Problem, Source
from sluicegate.proxy.network.certificates import Flaw, flaws_of, tls_files
from sluicegate.proxy.process.rule_check import flaws_in_rules


def flaws_in(config: Config) -> Iterator[Flaw]:
    """About certificates, keys, files with secrets, and what rules name: schemas, expressions, entry points."""
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


def problem_of(flaw: Flaw, source: Source) -> Problem:
    """A flaw with the place that it is about."""
    path = tuple(int(part) if part.isdigit() else part for part in flaw.key.split("."))
    return Problem(source.key_of(path), source.place_of(path), flaw.message)
