"""What every test has at hand."""

pytest_plugins = ["tests.broker.fixtures"]
