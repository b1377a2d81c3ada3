"""The base class of the pipeline's errors."""


class PipelineError(Exception):
    """An error that a command reports as one line, without a traceback. Its text is for people."""
