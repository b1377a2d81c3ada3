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
def test_without_a_token_local_names_have_access(host: str) -> None:
    assert HERE.rejection_of_files({"host": host}) is None
    assert HERE.rejection_of_data({"host": host}) is None


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:9650", "", "localhost.evil.example", "[::1].evil", "10.0.0.1"]
)
def test_a_foreign_name_that_resolves_here_is_rejected(host: str) -> None:
    rejection = HERE.rejection_of_data({"host": host})

    assert rejection is not None
    assert rejection.status == 403
    assert b"admin.token_file" in rejection.body


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_other_sites_get_no_figures(site: str) -> None:
    rejection = HERE.rejection_of_data({"host": "127.0.0.1:9650", "sec-fetch-site": site})

    assert rejection is not None
    assert rejection.status == 403


@pytest.mark.parametrize("host", ["0.0.0.0", "", "10.1.2.3", "::", "proxy.internal"])
def test_a_public_address_without_a_token_rejects_and_names_the_setting(host: str) -> None:
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
def test_with_a_token_files_are_public_and_data_needs_the_token(header: str, status: int | None) -> None:
    access = Access(HostPort("0.0.0.0", 9650), TOKEN)
    headers = {"host": "proxy.internal:9650", "authorization": header}

    assert access.rejection_of_files(headers) is None
    rejection = access.rejection_of_data(headers)
    assert (rejection.status if rejection is not None else None) == status
    if rejection is not None:
        assert b"sesame" not in rejection.body


def test_a_token_file_is_read_again_a_missing_one_is_kept_and_an_empty_one_denies_access(tmp_path: Path) -> None:
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
