"""Only this machine, or a user with the token, can open the web UI; no other site or DNS name can."""

from pathlib import Path

import pytest

from sluicegate.config.values.address import HostPort
from sluicegate.config.values.password import Password, SecretText
from sluicegate.proxy.webui.access import Access

HERE = Access(HostPort("127.0.0.1", 9650), None)
TOKEN = Password("admin.token_file", SecretText("open sesame"), None)


@pytest.mark.parametrize(
    "host", ["127.0.0.1:9650", "localhost", "LOCALHOST:1", "[::1]:9650", "127.8.8.8", "localhost.:9"]
)
def test_local_host_names_have_access_if_no_token_is_configured(host: str) -> None:
    assert HERE.rejection_of_files({"host": host}) is None
    assert HERE.rejection_of_data({"host": host}) is None


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:9650", "", "localhost.evil.example", "[::1].evil", "10.0.0.1"]
)
def test_foreign_host_name_is_rejected(host: str) -> None:
    rejection = HERE.rejection_of_data({"host": host})

    assert rejection is not None
    assert rejection.status == 403
    assert b"admin.token_file" in rejection.body


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_cross_site_data_requests_are_rejected(site: str) -> None:
    rejection = HERE.rejection_of_data({"host": "127.0.0.1:9650", "sec-fetch-site": site})

    assert rejection is not None
    assert rejection.status == 403


@pytest.mark.parametrize("host", ["0.0.0.0", "", "10.1.2.3", "::", "proxy.internal"])
def test_public_listen_address_without_a_token_rejects_and_names_the_setting(host: str) -> None:
    access = Access(HostPort(host, 9650), None)

    for rejection in (
        access.rejection_of_files({"host": "127.0.0.1"}),
        access.rejection_of_data({"host": "127.0.0.1"}),
    ):
        assert rejection is not None
        assert rejection.status == 403
        assert b"admin.token_file" in rejection.body


@pytest.mark.parametrize(
    ("header", "status"),
    [
        ("Bearer open sesame", None),
        ("bearer open sesame", None),
        ("Bearer open", 401),
        ("Bearer ", 401),
        ("Basic open sesame", 401),
        ("Bearer \xe9", 401),
        ("", 401),
    ],
)
def test_files_are_public_and_data_requires_the_configured_token(header: str, status: int | None) -> None:
    access = Access(HostPort("0.0.0.0", 9650), TOKEN)
    headers = {"host": "proxy.internal:9650", "authorization": header}

    assert access.rejection_of_files(headers) is None
    rejection = access.rejection_of_data(headers)
    assert (rejection.status if rejection is not None else None) == status
    if rejection is not None:
        assert b"sesame" not in rejection.body


def test_token_file_is_reread_and_kept_if_deleted_and_denies_access_if_empty(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("first\n")
    access = Access(HostPort("0.0.0.0", 9650), Password("admin.token_file", None, str(file)))
    assert access.rejection_of_data({"authorization": "Bearer first"}) is None

    file.write_text("second\n")
    assert access.rejection_of_data({"authorization": "Bearer second"}) is None
    assert access.rejection_of_data({"authorization": "Bearer first"}) is not None

    file.unlink()
    assert access.rejection_of_data({"authorization": "Bearer second"}) is None

    file.write_text("")
    rejection = access.rejection_of_data({"authorization": "Bearer "})
    assert rejection is not None
    assert rejection.status == 503
