"""The doctor reports whether policies can rely on principals."""

import pytest

from sluicegate.proxy.doctor.check_result import Level
from sluicegate.proxy.doctor.logins import check
from tests.config.reading import SMALLEST, load_text

_EXEMPT = "exempt: [{client_id: a}, {principal: 'User:mirror'}]"
_CLAIM = SMALLEST.replace("listen: {", "listen: {sasl.oauthbearer.sub.claim.name: azp, ")


_NAMES = SMALLEST.replace("listen: {", "listen: {user_name_is_principal: [PLAIN, SCRAM-SHA-512], ")


@pytest.mark.parametrize(("text", "level"), [(SMALLEST, Level.WARNING), (_CLAIM, Level.OK), (_NAMES, Level.OK)])
def test_a_policy_with_a_principal_is_a_warning_without_a_declaration(text: str, level: Level) -> None:
    (result,) = check(load_text(text + _EXEMPT).config)

    assert result.level is level
    assert result.found.startswith("exempt[1].principal: ")


def test_policies_without_principals_have_no_finding() -> None:
    assert list(check(load_text(SMALLEST).config)) == []


def test_the_finding_says_which_mechanisms_give_principals() -> None:
    (result,) = check(load_text(_NAMES + _EXEMPT).config)

    assert result.found.partition(": ")[2] == (
        "principals are user names of PLAIN, SCRAM-SHA-512; those of other SASL logins are unverified"
    )
