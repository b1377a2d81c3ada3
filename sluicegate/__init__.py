"""What is installed: the folders of the repository, each linked here, under the one name they have beside others."""

__version__ = "0.1.0"  # a test compares it with pyproject.toml; importlib.metadata would load the email package
