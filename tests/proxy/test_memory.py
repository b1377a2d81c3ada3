"""The budget for gathered frames."""

from proxy.memory import GatherBudget


def test_first_come_first_served() -> None:
    budget, served = GatherBudget(100), []
    waiters = [lambda name=name: served.append(name) for name in ("large", "small")]  # type: ignore[misc]

    assert budget.take(80, waiters[0])
    assert not budget.take(50, waiters[0])
    assert not budget.take(10, waiters[1])  # it would fit, but somebody waits before it
    budget.give_back(80)

    assert served == ["large", "small"]


def test_who_has_gone_is_not_served() -> None:
    budget, served = GatherBudget(100), []

    def gone() -> None:
        served.append("gone")

    def here() -> None:
        served.append("here")

    budget.take(100, gone)
    budget.take(60, gone)
    budget.take(60, here)
    budget.forget(gone)
    budget.give_back(100)

    assert served == ["here"]
