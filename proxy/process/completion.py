"""Scripts with which shells complete the command: made of the command line as it is; at a TAB nothing is started."""

from collections.abc import Callable, Sequence
from enum import StrEnum

from sluicegate.proxy.process.command_tree import Command, Option


class Shell(StrEnum):
    """A shell that there is a script for."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def script_for(shell: Shell, commands: Sequence[Command]) -> str:
    """The whole script; the first of `commands` is what stands before any command."""
    return _SCRIPTS[shell](commands[0], commands[1:])


def _bash(root: Command, commands: Sequence[Command]) -> str:
    words = [f'        "") words="{" ".join((*_names(root), *(one.name for one in commands)))}" ;;']
    words += [f'        {one.name}) words="{" ".join(_names(one))}" ;;' for one in commands]
    values = {name: option.choices for one in commands for option in one.options for name in option.names}
    chosen = [f'        {one.name}) words="{" ".join(_choices(one))}" ;;' for one in commands if _choices(one)]
    plain = sorted({name for one in (root, *commands) for name in _taking(one) if not values.get(name)})
    files = sorted({name for one in commands for option in one.options if option.takes_file for name in option.names})
    with_files = "|".join(one.name for one in commands if one.takes_file)
    return "\n".join(
        (
            "# sluicegate completion for bash: source this, or keep it where bash-completion looks.",
            "_sluicegate() {",
            '    local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD - 1]}"',
            '    local command="" words="" i',
            "    COMPREPLY=()",
            "    for ((i = 1; i < COMP_CWORD; i++)); do",
            '        if [[ ${COMP_WORDS[i]} != -* ]]; then command="${COMP_WORDS[i]}"; break; fi',
            "    done",
            '    case "$previous" in',
            f"        {'|'.join(files)}) _sluicegate_files; return ;;",
            f"        {'|'.join(name for name in plain if name not in files)}) return ;;",
            "    esac",
            "    if [[ -n $command && $current != -* ]]; then",
            '        case "$command" in',
            f"            {with_files}) _sluicegate_files; return ;;",
            *(f"    {line}" for line in chosen),
            "        esac",
            '        COMPREPLY=($(compgen -W "$words" -- "$current"))',
            "        return",
            "    fi",
            '    case "$command" in',
            *words,
            "    esac",
            '    COMPREPLY=($(compgen -W "$words" -- "$current"))',
            "}",
            "_sluicegate_files() {",
            "    local IFS=$'\\n'",
            "    compopt -o filenames 2>/dev/null",
            '    COMPREPLY=($(compgen -f -- "$current"))',
            "}",
            "complete -F _sluicegate sluicegate",
            "",
        )
    )


def _zsh(root: Command, commands: Sequence[Command]) -> str:
    told = " ".join(_quoted(f"{one.name}:{one.in_short.replace(':', ' ')}") for one in commands)
    cases = []
    for one in commands:
        specs = [_zsh_spec(option, name) for option in one.options for name in option.names]
        specs += [f"*:{_zsh_values(argument)}" for argument in one.arguments]
        cases += [f"        {one.name})", f"            _arguments {' '.join(map(_quoted, specs))}", "            ;;"]
    first = " ".join(_quoted(f"{name}:{option.about}") for option in root.options for name in option.names)
    return "\n".join(
        (
            "#compdef sluicegate",
            "# sluicegate completion for zsh: keep it as _sluicegate in a folder of $fpath, or source it.",
            "_sluicegate() {",
            "    local -a commands options",
            f"    commands=({told})",
            f"    options=({first})",
            "    if (( CURRENT == 2 )); then",
            "        _describe command commands",
            "        [[ $PREFIX == -* ]] && _describe option options",
            "        return",
            "    fi",
            "    shift words",
            "    (( CURRENT-- ))",
            "    case $words[1] in",
            *cases,
            "    esac",
            "}",
            '[[ $zsh_eval_context[-1] == loadautofunc ]] && _sluicegate "$@" || compdef _sluicegate sluicegate',
            "",
        )
    )


def _zsh_spec(option: Option, name: str) -> str:
    about = option.about.replace("[", "(").replace("]", ")").replace(":", " ")
    star = "*" if option.repeated else ""
    return f"{star}{name}[{about}]" + (f":{_zsh_values(option)}" if option.takes is not None else "")


def _zsh_values(option: Option) -> str:
    takes = (option.takes or "").replace(":", "-")
    if option.takes_file:
        return f"{takes}:_files"
    return f"{takes.replace('|', ' ')}:({' '.join(option.choices)})" if option.choices else f"{takes}: "


def _fish(root: Command, commands: Sequence[Command]) -> str:
    lines = [
        "# sluicegate completion for fish: keep it as ~/.config/fish/completions/sluicegate.fish, or source it.",
        "complete -c sluicegate -f",
    ]
    lines += [_fish_option("__fish_use_subcommand", option) for option in root.options]
    for one in commands:
        lines.append(f"complete -c sluicegate -n __fish_use_subcommand -a {one.name} -d {_quoted(one.in_short)}")
        here = f"__fish_seen_subcommand_from {one.name}"
        lines += [_fish_option(here, option) for option in one.options]
        if one.takes_file:
            lines.append(f"complete -c sluicegate -n {_quoted(here)} -F")
        if _choices(one):
            lines.append(f"complete -c sluicegate -n {_quoted(here)} -a {_quoted(' '.join(_choices(one)))}")
    return "\n".join((*lines, ""))


def _fish_option(where: str, option: Option) -> str:
    names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
    takes = "" if option.takes is None else " -r -F" if option.takes_file else " -x"
    return f"complete -c sluicegate -n {_quoted(where)} {names}{takes} -d {_quoted(option.about)}"


def _names(command: Command) -> list[str]:
    return [name for option in command.options for name in option.names]


def _taking(command: Command) -> list[str]:
    return [name for option in command.options if option.takes is not None for name in option.names]


def _choices(command: Command) -> list[str]:
    return [choice for argument in command.arguments for choice in argument.choices]


def _quoted(text: str) -> str:
    """Between single quotes, as all three take it."""
    return "'" + text.replace("'", "’") + "'"


_SCRIPTS: dict[Shell, Callable[[Command, Sequence[Command]], str]] = {
    Shell.BASH: _bash,
    Shell.ZSH: _zsh,
    Shell.FISH: _fish,
}
