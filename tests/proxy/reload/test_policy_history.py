"""The last changes of policies are kept, and their number and size are bounded."""

from sluicegate.proxy.reload.policy_history import MOST_KEPT, PolicyHistory, PolicyReload


def test_history_keeps_only_newest_reloads_and_bounds_their_size() -> None:
    history = PolicyHistory()
    files = {f"f{i}.yaml": None for i in range(1000)}
    for i in range(MOST_KEPT + 5):
        history.add(PolicyReload(i, files, {"looser": ["x" * 10_000] * 20}, 500))

    kept = history.as_json()

    assert [each["time_ms"] for each in kept] == list(range(MOST_KEPT + 4, 4, -1))
    assert (len(kept[0]["files"]), kept[0]["other_files"], kept[0]["count"]) == (20, 980, 500)
    assert max(map(len, kept[0]["looser"])) < 400


def test_uncompared_reload_lists_no_policy_changes() -> None:
    reload = PolicyReload(5, {"c.yaml": "ab"}).as_json()

    assert (reload["compared"], reload["stricter"], reload["looser"], reload["changed"]) == (False, [], [], [])
