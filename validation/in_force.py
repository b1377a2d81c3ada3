"""The rulebook that holds now."""

from collections.abc import Mapping

from sluicegate.validation.cluster_settings import ClusterSettings
from sluicegate.validation.rulebook import FilePolicies, Rulebook


class RulesInForce:
    """One thread replaces `rulebook`, whole; any thread reads it, once for a request.

    `generation` is the rulebook's, at hand for who forgets by it what it was taught.
    """

    __slots__ = ("generation", "rulebook")

    def __init__(self, rulebook: Rulebook) -> None:
        self.rulebook = rulebook
        self.generation = rulebook.generation

    def learn(self, told: Mapping[str, ClusterSettings | None]) -> None:
        """What the cluster has told of some topics; see `Rulebook.with_settings`."""
        self._replace(self.rulebook.with_settings(told))

    def adopt(self, file: FilePolicies) -> None:
        """Another file holds from now on."""
        self._replace(self.rulebook.with_file(file))

    def _replace(self, rulebook: Rulebook) -> None:
        self.rulebook = rulebook
        self.generation = rulebook.generation
