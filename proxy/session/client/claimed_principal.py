"""The principal that a login names, and whether policies may rely on it.

No Kafka API returns a connection's principal. A broker's `principal.builder.class` derives it from a login. So the name
in a token is the principal only under conditions that the operator declares (`listen`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from sluicegate.config.listen import Listen
from sluicegate.proxy.session.client.bearer_token import USUAL_CLAIM, UserNames, name_in_token, user_names_of
from sluicegate.proxy.session.client.client_text import MAX_CHARACTERS, client_text

KIND = "User:"
"""The prefix that marks the type of every principal."""
_UNVERIFIED = " (unverified)"
_MAX_SCRAM_BYTES = 8192
_OR_BY_ID = "or name the client's id in exemptions and policies instead"


class UnverifiedReason(Enum):
    """Why a principal is unverified. The value is the code in conditions."""

    UNDECLARED_USER_NAME = "undeclared_user_name"
    UNDECLARED_CLAIM = "undeclared_claim"
    DELEGATION_TOKEN = "delegation_token"  # noqa: S105  # a code, not a secret
    NO_NAME = "no_name"
    ALTERED_NAME = "altered_name"

    @property
    def reason(self) -> str:
        """Why the proxy does not know the principal."""
        return _EXPLANATIONS[self][0]

    @property
    def advice(self) -> str:
        """How the operator can make the principal known to the proxy."""
        return _EXPLANATIONS[self][1]


_EXPLANATIONS = {
    UnverifiedReason.UNDECLARED_USER_NAME: (
        "the proxy does not know whether the brokers take the user name of this mechanism as the principal",
        "add the mechanism to listen.user_name_is_principal if the brokers have Kafka's own login handlers and the "
        f"default principal.builder.class, {_OR_BY_ID}",
    ),
    UnverifiedReason.UNDECLARED_CLAIM: (
        "the proxy does not know which claim of an OAUTHBEARER token is the brokers' principal",
        "set listen.sasl.oauthbearer.sub.claim.name to the brokers' sasl.oauthbearer.sub.claim.name (sub, if they do "
        "not set it), or listen.oauth.username.claim to Strimzi's oauth.username.claim",
    ),
    UnverifiedReason.DELEGATION_TOKEN: (
        "the user name of a login with a delegation token is the token's id, and only the brokers know its owner",
        f"let the client log in without a delegation token, {_OR_BY_ID}",
    ),
    UnverifiedReason.NO_NAME: (
        "the login contains no user name that the proxy can read",
        f"let the client log in with PLAIN, SCRAM or a JWT that has the claim, {_OR_BY_ID}",
    ),
    UnverifiedReason.ALTERED_NAME: (
        "the name is too long, is not UTF-8 or has control characters, so the proxy shows it in another form",
        f"give the client a name of at most {MAX_CHARACTERS - len(KIND)} printable characters",
    ),
}


class ClaimedPrincipal(NamedTuple):
    """The principal that a login names, as the proxy shows it.

    If `doubt` is None, the principal is verified: a broker that accepts the login authorizes this principal. Otherwise
    the name ends with " (unverified)".
    """

    principal: str
    doubt: UnverifiedReason | None = None

    @property
    def is_verified(self) -> bool:
        """Whether rules, quotas and exemptions may rely on it."""
        return self.doubt is None


UNNAMED = ClaimedPrincipal(f"unknown{_UNVERIFIED}", UnverifiedReason.NO_NAME)
"""The principal of a login that names no user to the proxy, for example with GSSAPI, or with a
token that is not a JWT.
"""


@dataclass(frozen=True, slots=True)
class PrincipalSources:
    """How brokers derive principals, as the operator has declared.

    `user_names` contains the mechanisms whose user name is the principal. `claims` returns the user name in an
    OAUTHBEARER token; it is None if the operator has not declared how brokers read tokens.
    """

    user_names: frozenset[str] = frozenset()
    claims: UserNames | None = None


def principal_sources_of(listen: Listen) -> PrincipalSources:
    """Return what the configuration section `listen` declares."""
    return PrincipalSources(frozenset(listen.user_name_is_principal), user_names_of(listen))


def principal_in(mechanism: str | None, token: bytes, sources: PrincipalSources) -> ClaimedPrincipal:
    """Return the principal that a login's first token names, in Kafka's form (User:name)."""
    read = _READERS.get(mechanism or "")
    return UNNAMED if read is None else read(mechanism or "", token, sources)


def principal_of_certificate(principal: str) -> ClaimedPrincipal:
    """Return a verified certificate's principal.

    `principal` is `User:` followed by the subject or the mapped name.
    """
    return _claimed(principal.removeprefix(KIND))


def _plain(mechanism: str, token: bytes, sources: PrincipalSources) -> ClaimedPrincipal:
    """Parse a PLAIN token, "authzid NUL authcid NUL password" (RFC 4616)."""
    parts = token.split(b"\0", 3)
    return _user_name(mechanism, parts[1] if len(parts) == 3 else b"", sources)


def _scram(mechanism: str, token: bytes, sources: PrincipalSources) -> ClaimedPrincipal:
    """Parse the first SCRAM token, "n,,n=user,r=nonce" (RFC 5802).

    With the extension `tokenauth=true` the user is a delegation token's id (KIP-48).
    """
    if len(token) > _MAX_SCRAM_BYTES or token[:2] not in (b"n,", b"y,", b"p="):
        return UNNAMED
    # The last part of the token is not used. It only shows that the attribute before it is complete.
    attributes = token.split(b",", 4)[2:-1]
    user = next((part[2:] for part in attributes if part.startswith(b"n=")), b"")
    name = user.replace(b"=2C", b",").replace(b"=3D", b"=")
    if name and b",tokenauth=true" in token.lower():
        return _claimed(name, UnverifiedReason.DELEGATION_TOKEN)
    return _user_name(mechanism, name, sources)


def _bearer(_: str, token: bytes, sources: PrincipalSources) -> ClaimedPrincipal:
    name = name_in_token(token, sources.claims or USUAL_CLAIM)
    return _claimed(name, UnverifiedReason.UNDECLARED_CLAIM if sources.claims is None else None) if name else UNNAMED


_READERS: dict[str, Callable[[str, bytes, PrincipalSources], ClaimedPrincipal]] = {
    "PLAIN": _plain,
    "SCRAM-SHA-256": _scram,
    "SCRAM-SHA-512": _scram,
    "OAUTHBEARER": _bearer,
}


def _user_name(mechanism: str, name: bytes, sources: PrincipalSources) -> ClaimedPrincipal:
    if not name:
        return UNNAMED
    return _claimed(name, None if mechanism in sources.user_names else UnverifiedReason.UNDECLARED_USER_NAME)


def _claimed(name: bytes | str, doubt: UnverifiedReason | None = None) -> ClaimedPrincipal:
    """Return the principal with this name.

    It is in doubt if the name cannot be shown unchanged, because another name may look the same.
    """
    shown = client_text(name, MAX_CHARACTERS - len(KIND))
    if doubt is None and (shown.encode(errors="replace") if isinstance(name, bytes) else shown) != name:
        doubt = UnverifiedReason.ALTERED_NAME
    if doubt is None:
        return ClaimedPrincipal(KIND + shown)
    return ClaimedPrincipal(KIND + client_text(name, MAX_CHARACTERS - len(KIND + _UNVERIFIED)) + _UNVERIFIED, doubt)
