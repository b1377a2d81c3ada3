"""Whether policies can rely on principals."""

import pytest

from sluicegate.proxy.doctor.finding import Level
from sluicegate.proxy.doctor.logins import findings
from tests.config.reading import SMALLEST, loaded

_EXEMPT = "exempt: [{client_id: a}, {principal: 'User:mirror'}]"
_CLAIM = SMALLEST.replace("listen: {", "listen: {sasl.oauthbearer.sub.claim.name: azp, ")


@pytest.mark.parametrize(("text", "level"), [(SMALLEST, Level.WARNING), (_CLAIM, Level.OK)])
def test_a_policy_that_names_a_principal_is_looked_at(text: str, level: Level) -> None:
    (finding,) = findings(loaded(text + _EXEMPT).config)

    assert finding.level is level
    assert finding.found.startswith("exempt[1].principal: ")


def test_nothing_is_said_where_none_does() -> None:
    assert list(findings(loaded(SMALLEST).config)) == []
