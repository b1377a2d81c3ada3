"""Sections of a configuration arrive at the workers unchanged."""

import pickle
from dataclasses import replace

from tests.config.reading import SMALLEST, load_text


def test_configuration_survives_pickling() -> None:
    config = load_text(SMALLEST + "defaults: {mode: observe}").config

    restored = pickle.loads(pickle.dumps(config))

    assert restored == config
    assert replace(restored, drain_timeout_seconds=1).drain_timeout_seconds == 1
