"""For the proxy's own logins there is a valid token, or a reason why there is none."""

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from sluicegate.config.upstream import Sasl
from sluicegate.proxy.tokens.cache import TokenMissing
from sluicegate.proxy.tokens.own_token import own_token
from tests.config.reading import problems_of_text
from tests.pipeline.bearers import unsecured_token

_SASL = "upstream: {{bootstrap: 'h:1', sasl: {{{}}}}}\nlisten: {{bootstrap: '127.0.0.1:2'}}\n"


def _of(file: Path) -> Sasl:
    return Sasl(mechanism="OAUTHBEARER", token_file=str(file))


@pytest.mark.parametrize(
    ("make", "seconds"),
    [
        (partial(unsecured_token, lasts_seconds=60), 60),
        (unsecured_token, 300),
        (lambda: "opaque", 300),
        (lambda: "a.!.c", 300),
        (lambda: "a.e30.c", 300),
    ],
)
def test_token_file_is_reread_before_its_token_expires(tmp_path: Path, make: Callable[[], str], seconds: int) -> None:
    content = make()
    (file := tmp_path / "token").write_text(content + "\n")

    found = own_token(_of(file), 1)

    assert found.value == content
    assert abs(found.until - time.time() - seconds) < 10


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot be read: No such file or directory"),
        ("", "is empty"),
        ("planted\1auth=Bearer x", "has no valid token"),
        (unsecured_token("planted", -30), r"expired \d+ s ago"),
    ],
)
def test_error_for_an_invalid_token_file_has_its_path_but_not_its_content(
    tmp_path: Path, content: str | None, reason: str
) -> None:
    if content is not None:
        (tmp_path / "token").write_text(content)

    with pytest.raises(TokenMissing, match=reason) as raised:
        own_token(_of(tmp_path / "token"), 1)

    assert str(tmp_path / "token") in str(raised.value)
    assert "planted" not in str(raised.value)
    assert not content or content not in str(raised.value)


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("mechanism: OAUTHBEARER", "OAUTHBEARER needs oauth or token_file"),
        ("mechanism: PLAIN, username: u, password: p, extensions: {a: b}", "need mechanism: OAUTHBEARER"),
        ("mechanism: OAUTHBEARER, token_file: f, username: u", "takes a token"),
        ("mechanism: OAUTHBEARER, token_file: f, extensions: {auth: x}", "consists of letters, and is not auth"),
        ("mechanism: OAUTHBEARER, token_file: f, extensions: {a: é}", "is not printable ASCII"),
        ("mechanism: PLAIN, username: u, password: p, token_file: f", "need mechanism: OAUTHBEARER"),
        ("mechanism: PLAIN, password: p", "PLAIN needs a username"),
    ],
)
def test_rejects_keys_that_do_not_fit_the_sasl_mechanism(keys: str, problem: str) -> None:
    (found,) = problems_of_text(_SASL.format(keys))

    assert problem in found
