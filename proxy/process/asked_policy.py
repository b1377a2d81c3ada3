"""What applies to a topic, asked of the process that reads configurations: what serves holds no line of the file."""

from collections.abc import Callable

from sluicegate.proxy.process.config_file import ConfigFile
from sluicegate.proxy.process.reading_apart import Explain, Explained, Reader, ReaderEnded, ReaderSilent

_SECONDS = 60.0
_NO_FILE = "There is no configuration file: the command line and the environment alone say what holds."


def explainer(file: ConfigFile | None) -> Callable[[str], list[str]]:
    """Says of a topic what the file has for it, as it is now; takes a second, and blocks."""

    def explain(topic: str) -> list[str]:
        if file is None:
            return [_NO_FILE]
        try:
            found = Reader(Explain(file, topic)).answer(_SECONDS)
        except ReaderEnded as error:
            return [f"{error}; the log may say more"]
        except ReaderSilent as error:
            return [str(error)]
        assert isinstance(found, Explained)
        return list(found.lines)

    return explain
