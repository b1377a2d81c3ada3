"""The registries that a configuration names. They and their caches survive reloads of the rules."""

import ssl
from collections.abc import Callable, Mapping
from functools import cache
from time import monotonic

from sluicegate.config.registries import Registry
from sluicegate.config.tls import ServerTls
from sluicegate.proxy.network.tls.contexts import BadTlsFiles, TlsContext, context_for_server
from sluicegate.proxy.registry.apicurio_api import ApicurioApi
from sluicegate.proxy.registry.aws_login import AwsLogin
from sluicegate.proxy.registry.breaker import NoRegistryEvents, RegistryEvents
from sluicegate.proxy.registry.confluent_api import ConfluentApi, SchemaApi
from sluicegate.proxy.registry.failed_look_ups import LookUp
from sluicegate.proxy.registry.glue_api import GlueApi
from sluicegate.proxy.registry.glue_folder import GlueFolder
from sluicegate.proxy.registry.http import RegistryFailed, RegistryHttp
from sluicegate.proxy.registry.login import BasicLogin, BearerLogin, OauthLogin, RegistryLogin
from sluicegate.proxy.registry.schema_compiler import SchemaCompiler, compile_inline
from sluicegate.proxy.registry.schema_registry import SchemaRegistry
from sluicegate.proxy.scheduling.wait_budget import WaitBudget
from sluicegate.proxy.tokens.cache import TokenCache
from sluicegate.proxy.tokens.endpoint import TokenEndpoint, configured_client
from sluicegate.validation.rules.protobuf.message_names import MessageNaming
from sluicegate.validation.rules.schemas.framing import ApicurioFraming, ConfluentFraming, GlueFraming, SchemaFraming
from sluicegate.validation.rules.schemas.wire_format import IdKind


class Registries:
    """Creates one SchemaRegistry for each entry of the configuration section `registries`.

    `wait_budget` limits how long callers may wait. `reports` receives the registries' events. `now` returns monotonic
    seconds. `compiler` compiles the schemas.
    """

    def __init__(
        self,
        wait_budget: WaitBudget | None = None,
        reports: RegistryEvents | None = None,
        now: Callable[[], float] = monotonic,
        compiler: SchemaCompiler = compile_inline,
    ) -> None:
        self._wait_budget = wait_budget
        self._reports = reports if reports is not None else NoRegistryEvents()
        self._now = now
        self._compiler = compiler
        self._made: dict[tuple[str, Registry], SchemaRegistry] = {}

    def by_name(self, sections: Mapping[str, Registry]) -> dict[str, SchemaRegistry]:
        """Return a configuration's registries, and close those that only the previous configuration has."""
        before = self._made
        self._made = {
            (name, section): before.get((name, section)) or self._new(name, section)
            for name, section in sections.items()
        }
        for key in before.keys() - self._made.keys():
            before[key].close()
        return {name: registry for (name, _), registry in self._made.items()}

    def failing(self) -> dict[str, dict[LookUp, str]]:
        """Return the registries in which lookups keep failing, with the kinds of lookup and their newest reasons."""
        found = {registry.name: registry.failing() for registry in list(self._made.values())}
        return {name: failing for name, failing in found.items() if failing}

    def repeat_failed(self) -> None:
        """Repeat failed lookups whose pause is over, without waiting for them."""
        for registry in list(self._made.values()):
            registry.repeat_failed()

    def _new(self, name: str, section: Registry) -> SchemaRegistry:
        return SchemaRegistry(
            name,
            http_of(name, section),
            section.refresh_seconds,
            now=self._now,
            wait_budget=self._wait_budget,
            reports=self._reports,
            compiler=self._compiler,
            api=api_of(section),
            framing=framing_of(section),
        )


def http_of(name: str, section: Registry) -> RegistryHttp:
    """Create an HTTP client for the registry of a section. It connects at its first request."""
    return RegistryHttp(section.endpoint, _login_of(name, section), _context_maker(name, section.tls or ServerTls()))


def _login_of(name: str, section: Registry) -> RegistryLogin | None:
    path = f"registries.{name}"
    if section.region is not None:
        return AwsLogin(section.region, "glue")
    if section.username is not None:
        return BasicLogin(section.username, section.password_of(path))
    if section.oauth is not None:
        return OauthLogin(TokenCache(TokenEndpoint(configured_client(section.oauth, f"{path}.oauth")).fetch))
    return BearerLogin(section.token_of(path)) if section.has_token else None


def api_of(section: Registry) -> SchemaApi:
    """Create the API of the registry that a section describes."""
    if section.type == "glue":
        return GlueApi(section.registry or "") if section.folder is None else GlueFolder(section.folder)
    if section.type == "apicurio":
        return ApicurioApi()
    is_optional = section.message_indexes == "optional"
    naming = MessageNaming.OPTIONAL_INDEXES if is_optional else MessageNaming.CONFLUENT
    return ConfluentApi(section.context or "", naming)


def framing_of(section: Registry) -> SchemaFraming:
    """Return how serializers for a section's registry identify a record's schema."""
    if section.type == "glue":
        return GlueFraming()
    return ApicurioFraming(IdKind(section.id)) if section.type == "apicurio" else ConfluentFraming()


def _context_maker(name: str, tls: ServerTls) -> Callable[[], ssl.SSLContext]:
    """Return a function that reads the TLS files for the first connection and checks them for
    changes for later ones.
    """

    @cache
    def make_context() -> TlsContext:
        return context_for_server(f"registries.{name}.tls", tls)

    def current() -> ssl.SSLContext:
        try:
            make_context().follow()
            return make_context().current()
        except BadTlsFiles as error:
            raise RegistryFailed(str(error)) from error

    return current
