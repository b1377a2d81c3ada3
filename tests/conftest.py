"""Configures settings and plugins for all tests."""

from hypothesis import HealthCheck, Phase, settings

pytest_plugins = ["tests.broker.fixtures", "tests.internal_errors", "tests.together", "tests.webui.browser"]

# For busy machines: no deadline for a single example, and no long explanations of failures.
settings.register_profile(
    "sluicegate",
    deadline=None,
    max_examples=100,
    phases=(Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("sluicegate")
