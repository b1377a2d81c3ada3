"""Defines the base classes of the pipeline's errors."""


class PipelineError(Exception):
    """An error that a command reports in one line, without a traceback. Its message is for people."""


class EarlierBuild(PipelineError):
    """Raised if results in a folder come from an earlier build, whose tables and files have other names."""

    def __init__(self, path: str) -> None:
        """Take `path`, which is the file or folder."""
        super().__init__(f"{path} was written by an earlier build of sluicegate: run the job again with a new --out")
