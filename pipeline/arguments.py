"""What the jobs' commands have in common on their command lines."""

from pathlib import Path
from typing import Annotated

import typer

Bootstrap = Annotated[str, typer.Option("--bootstrap", metavar="HOST:PORT[,…]", help="Brokers to start from.")]
Topic = Annotated[list[str], typer.Option("--topic", metavar="NAME", help="A topic; may be repeated.")]
TopicPatterns = Annotated[
    list[str] | None,
    typer.Option(
        "--topic", metavar="NAME|PATTERN", help="A topic, a glob such as orders-*, or /RE2/; may be repeated."
    ),
]
AllTopics = Annotated[bool, typer.Option("--all-topics", help="All topics of the cluster but its internal ones.")]
Out = Annotated[str, typer.Option("--out", metavar="DIR", help="Where results go; on a cluster, a path all can reach.")]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", help="Client settings (TLS, SASL): name=value lines.")
]
Master = Annotated[str | None, typer.Option("--master", help="Spark's master; without it, this machine's cores.")]
SparkLog = Annotated[
    Path | None,
    typer.Option("--spark-log", metavar="FILE", help="Add Spark's own log lines to this file; without it, drop them."),
]
Epoch = Annotated[
    str, typer.Option("--epoch", metavar="WHEN", help="Times before are implausible: 10y, 3650d, 2016 or 2016-11-30.")
]
AfterMax = Annotated[int, typer.Option("--after-max-ms", help="Further ahead of append than this is future.", min=0)]
AsJson = Annotated[bool, typer.Option("--json", help="Print the summary as JSON instead, for scripts.")]
SkipUnreadable = Annotated[
    bool,
    typer.Option("--skip-unreadable", help="Pass over batches that cannot be read, such as those with a wrong CRC."),
]
AFTER_MAX_MS, EPOCH = 3_600_000, "10y"
