"""The number of connections is limited, and only some client certificates may connect."""

from dataclasses import replace
from time import perf_counter

import pytest
from structlog.testing import capture_logs

from sluicegate.config.tls import ListenTls
from sluicegate.proxy.session.handlers.dependencies import SessionDependencies
from sluicegate.proxy.session.opening.admission import Admission, AllowedNames
from sluicegate.proxy.session.outlets import PeerInfo
from tests.proxy.session.playbook import Playbook


def test_connections_above_the_limit_are_not_admitted_until_another_closes() -> None:
    admission = Admission(2, None)
    assert admission.enter("a") is None
    assert admission.enter("b") is None

    assert admission.enter("c") == ("limits.max_connections", 2)
    admission.leave("a")
    assert admission.enter("c") is None


def test_connections_per_address_are_limited() -> None:
    admission = Admission(100, 2)
    for _ in range(2):
        assert admission.enter("greedy") is None

    assert admission.enter("greedy") == ("limits.max_connections_per_address", 2)
    assert admission.enter("other") is None


CERTIFICATES_ASKED = {
    "SLUICEGATE__LISTEN__TLS__CERTIFICATE_FILE": "own.pem",
    "SLUICEGATE__LISTEN__TLS__KEY_FILE": "own.key",
    "SLUICEGATE__LISTEN__TLS__CLIENT_AUTH": "required",
    "SLUICEGATE__LISTEN__TLS__CLIENT_CA_FILE": "ca.pem",
}


def session_with_certificate_names(*names: str) -> Playbook:
    """Return a session whose client certificate has these names."""

    def with_allowed_names(dependencies: SessionDependencies) -> SessionDependencies:
        return replace(
            dependencies, describe_client=lambda _: PeerInfo("192.0.2.1:5", "192.0.2.2:9092", True, names=names)
        )

    allowed = {"SLUICEGATE__LISTEN__TLS__ALLOWED_NAMES": "[billing, '*.orders.example.com', 'spiffe://example.com/*']"}
    return Playbook(change=with_allowed_names, **CERTIFICATES_ASKED, **allowed)


@pytest.mark.parametrize(
    "names", [("billing",), ("other", "eu.orders.example.com"), ("spiffe://example.com/ns/a",), ("x", "billing")]
)
def test_certificate_with_one_allowed_name_is_admitted(names: tuple[str, ...]) -> None:
    play = session_with_certificate_names(*names)

    assert not play.client.aborted
    assert not play.parts.counters.connections_rejected


@pytest.mark.parametrize(
    "names", [(), ("Billing",), ("billing2",), ("orders.example.com",), ("x.orders.example.com.evil",), ("a\nb",)]
)
def test_certificate_without_allowed_name_is_rejected_counted_and_logged_once(names: tuple[str, ...]) -> None:
    with capture_logs() as lines:
        play = session_with_certificate_names(*names)

    assert play.client.aborted
    assert play.parts.counters.connections_rejected == {"listen.tls.allowed_names": 1}
    (line,) = lines
    assert line["limit"] == "listen.tls.allowed_names"
    assert (", ".join(names).replace("\n", "\\x0a") or "nobody") in line["reason"]
    assert "\n" not in line["reason"]


def test_any_certificate_is_admitted_if_no_names_are_configured() -> None:
    assert not Playbook(**CERTIFICATES_ASKED).client.aborted


def test_allowed_names_require_client_certificates() -> None:
    with pytest.raises(ValueError, match="needs client_auth: required"):
        ListenTls(
            certificate_file="own.pem",
            key_file="own.key",
            client_auth="requested",
            client_ca_file="ca.pem",
            allowed_names=("billing",),
        )


def test_a_backtracking_name_pattern_is_matched_in_linear_time() -> None:
    allowed = AllowedNames(["/(a*)*b/", "*a*a*a*a*a*b"])
    began = perf_counter()

    assert not allowed.match_any(["a" * 50_000])

    assert perf_counter() - began < 5
