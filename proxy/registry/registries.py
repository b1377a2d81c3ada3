"""The registries that the file names, ready to be asked. They, and what they know, outlive reloads of the rules."""

import ssl
from collections.abc import Callable, Mapping
from functools import cache
from time import monotonic

from sluicegate.config.registries import Registry
from sluicegate.config.server_tls import ServerTls
from sluicegate.proxy.network.tls.contexts import BadTlsFiles, TlsContext, context_for_server
from sluicegate.proxy.registry.breaker import NobodyIsTold, Reports
from sluicegate.proxy.registry.http import Login, RegistryFailed, RegistryHttp
from sluicegate.proxy.registry.schema_compiler import SchemaCompiler, compiled_here
from sluicegate.proxy.registry.schema_registry import SchemaRegistry
from sluicegate.proxy.scheduling.wait_budget import WaitBudget


class Registries:
    """Makes a registry once for what the file says of it. `wait_budget`: how who asks may wait; `reports`: who is
    told how they are; `now`: seconds that only go forward; `compiler`: what makes something of their schemas.
    """

    def __init__(
        self,
        wait_budget: WaitBudget | None = None,
        reports: Reports | None = None,
        now: Callable[[], float] = monotonic,
        compiler: SchemaCompiler = compiled_here,
    ) -> None:
        self._wait_budget = wait_budget
        self._reports = reports if reports is not None else NobodyIsTold()
        self._now = now
        self._compiler = compiler
        self._made: dict[tuple[str, Registry], SchemaRegistry] = {}

    def by_name(self, sections: Mapping[str, Registry]) -> dict[str, SchemaRegistry]:
        """Those of a file; those of the file before that are not among them are given up."""
        before = self._made
        self._made = {
            (name, section): before.get((name, section)) or self._new(name, section)
            for name, section in sections.items()
        }
        for key in before.keys() - self._made.keys():
            before[key].close()
        return {name: registry for (name, _), registry in self._made.items()}

    def _new(self, name: str, section: Registry) -> SchemaRegistry:
        login = None if section.username is None else Login(section.username, section.current_password)
        http = RegistryHttp(section.url, login, _context_maker(name, section.tls or ServerTls()))
        return SchemaRegistry(
            name,
            http,
            section.refresh_seconds,
            now=self._now,
            wait_budget=self._wait_budget,
            reports=self._reports,
            compiler=self._compiler,
        )


def _context_maker(name: str, tls: ServerTls) -> Callable[[], ssl.SSLContext]:
    """Files are looked at when it is first connected to, and again at each connection."""

    @cache
    def made() -> TlsContext:
        return context_for_server(f"registries.{name}.tls", tls)

    def current() -> ssl.SSLContext:
        try:
            made().follow()
            return made().current()
        except BadTlsFiles as error:
            raise RegistryFailed(str(error)) from error

    return current
