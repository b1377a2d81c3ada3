"""The process that reads the configuration for another one and ends (`proxy/process/reading_apart.py`)."""

import socket
from functools import partial

from sluicegate.config.loading import ConfigError
from sluicegate.proxy.process.config_file import ConfigFile
from sluicegate.proxy.process.file_check import problem_of
from sluicegate.proxy.process.reading_apart import Again, Explain, Explained, Start, Unusable, Usable, received, send
from sluicegate.proxy.process.rule_check import flaws_in_rules


def main(descriptor: int) -> None:
    """Answer the one question that comes; the exit code is that of the command."""
    with socket.socket(fileno=descriptor) as asking:
        answer = partial(send, asking)
        match received(asking):
            case Start(arguments):
                from sluicegate.proxy.process.cli import app  # noqa: PLC0415  # not to read a file again

                app(args=list(arguments), prog_name="sluicegate", obj=answer)
            case Again(file):
                answer(read_again(file))
            case Explain(file, topic):
                answer(explained(file, topic))


def read_again(file: ConfigFile) -> Usable | Unusable:
    """What the file says now, unless something in it, or that its rules name, cannot be used."""
    try:
        loaded = file.read()
    except ConfigError as error:
        return Unusable(file, tuple(str(problem) for problem in error.problems))
    problems = tuple(str(problem_of(flaw, loaded.source)) for flaw in flaws_in_rules(loaded.config))
    return Unusable(file, problems) if problems else Usable(loaded.config, file, loaded.warnings)


def explained(file: ConfigFile, topic: str) -> Explained:
    """What the file says now of a topic, or why it cannot be read."""
    from sluicegate.proxy.process.topic_explanation import explain  # noqa: PLC0415  # only this question needs it

    try:
        return Explained(tuple(explain(topic, file.read())))
    except ConfigError as error:
        return Explained(("The file cannot be used as it is now:", *map(str, error.problems)))
