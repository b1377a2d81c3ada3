"""Defines the base class of the pipeline's errors."""


class PipelineError(Exception):
    """An error that a command reports as one line, without a traceback. Its text is for people."""


class EarlierBuild(PipelineError):
    """Raised if results in a folder are of an earlier build, whose tables and files use other names."""

    def __init__(self, path: str) -> None:
        """Take `path`, the file or folder."""
        super().__init__(f"{path} was written by an earlier build of sluicegate: run the job again with a new --out")
