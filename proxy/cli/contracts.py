"""The commands about data contracts (`sluicegate contract`)."""

from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from sluicegate.config.files.patterns import CONTRACTS
from sluicegate.config.files.source import Source
from sluicegate.config.loading import Loaded, load
from sluicegate.proxy.cli.console import HELP, print_lines, read

_USAGE = 2
_ANY_BROKER, _ANY_PORT = "localhost:9092", "localhost:9292"

contracts = typer.Typer(
    no_args_is_help=True,
    context_settings=HELP,
    help="Show the rules and owners that data contracts give topics, and compare two contracts.",
)

_Registry = Annotated[
    str | None, typer.Option("--registry", metavar="NAME", help="The schema registry for Avro and Protobuf records.")
]


@contracts.command(name="import", context_settings=HELP)
def import_(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A contract of the Open Data Contract Standard 3, or an AsyncAPI document."
        ),
    ],
    registry: _Registry = None,
) -> None:
    """Print the entries of `topics` that a contract stands for, as YAML. Comments list what the entries
    do not check.
    """
    loaded = _loaded(file, registry)
    entries = [entry for entry in loaded.source.data.get("topics") or () if entry["match"] in loaded.source.contracts]
    print_lines(f"# warning: {warning}" for warning in loaded.warnings)
    for contract in loaded.source.contracts.values():
        print_lines(f"# {line}" for line in (contract.topic, *contract.lines()))
    for line in yaml.dump({"topics": entries}, Dumper=_Blocks, sort_keys=False, width=1000).splitlines():
        typer.echo(line)


@contracts.command(context_settings=HELP)
def diff(
    old: Annotated[Path, typer.Argument(metavar="OLD", help="The contract before the change.")],
    new: Annotated[Path, typer.Argument(metavar="NEW", help="The contract after the change.")],
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 if a rule becomes looser. For CI.")] = False,
    registry: _Registry = None,
) -> None:
    """Compare two contracts: print what becomes stricter or looser for producers."""
    from sluicegate.proxy.reload.policy_changes import ProducerEffect, changes_between, counts_of

    changes = list(changes_between(_loaded(old, registry), _loaded(new, registry)))
    print_lines(map(str, changes))
    print_lines([counts_of(changes)])
    raise typer.Exit(1 if strict and any(change.effect is ProducerEffect.LOOSER for change in changes) else 0)


def _loaded(file: Path, registry: str | None) -> Loaded:
    """Return a configuration that contains only this contract. Problems end the command."""
    item = {"path": str(file.absolute())} | ({} if registry is None else {"registry": registry})
    data: dict[str, Any] = {
        "upstream": {"bootstrap": [_ANY_BROKER]},
        "listen": {"bootstrap": _ANY_PORT},
        CONTRACTS: [item],
    }
    if registry is not None:
        data["registries"] = {registry: {"url": "http://localhost"}}
    return read(lambda: load(Source(str(file), data), {}), code=_USAGE)


class _Blocks(yaml.SafeDumper):
    """A YAML dumper that writes no aliases."""

    def ignore_aliases(self, _data: Any) -> bool:
        return True
