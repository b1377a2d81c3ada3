"""The base class of the pipeline's errors."""


class PipelineError(Exception):
    """An error that a command reports as one line, without a traceback. Its text is for people."""


class EarlierBuild(PipelineError):
    """Results in a folder are of an earlier build, whose tables and files have other names in them."""

    def __init__(self, path: str) -> None:
        """`path`: the file or folder."""
        super().__init__(f"{path} was written by an earlier build of sluicegate: run the job again with a new --out")
