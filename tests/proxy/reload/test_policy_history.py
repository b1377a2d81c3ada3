"""The last changes of policies are kept, and their number and size are bounded."""

from sluicegate.proxy.reload.policy_history import MOST_KEPT, PolicyHistory, PolicyReload


def test_only_the_newest_reloads_are_kept_and_each_is_small() -> None:
    history = PolicyHistory()
    files = {f"f{i}.yaml": None for i in range(1000)}
    for i in range(MOST_KEPT + 5):
        history.add(PolicyReload(i, files, {"looser": ["x" * 10_000] * 20}, 500))

    kept = history.as_json()

    assert [each["time_ms"] for each in kept] == list(range(MOST_KEPT + 4, 4, -1))
    assert (len(kept[0]["files"]), kept[0]["other_files"], kept[0]["count"]) == (20, 980, 500)
    assert max(map(len, kept[0]["looser"])) < 400


def test_a_reload_that_was_not_compared_has_no_effects() -> None:
    reload = PolicyReload(5, {"c.yaml": "ab"}).as_json()

    assert (reload["compared"], reload["stricter"], reload["looser"], reload["changed"]) == (False, [], [], [])
