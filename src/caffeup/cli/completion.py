"""Completion for shells: the scripts, and the words that can follow. Nothing is written anywhere."""

from __future__ import annotations

import typer

VARIABLE = "_CAFFEUP_COMPLETE"
"""What the scripts ask through; the same for ``caffeup`` and ``caffeup.sh``."""

_BASH = f"""_caffeup_completion() {{
    local IFS=$'\\n'
    COMPREPLY=($(env COMP_WORDS="${{COMP_WORDS[*]}}" COMP_CWORD="$COMP_CWORD" {VARIABLE}=complete_bash "$1" 2>/dev/null))
}}
complete -o default -F _caffeup_completion caffeup caffeup.sh
"""
_ZSH = f"""#compdef caffeup caffeup.sh
_caffeup_completion() {{
    eval "$(env _TYPER_COMPLETE_ARGS="${{words[1,$CURRENT]}}" {VARIABLE}=complete_zsh "${{words[1]}}" 2>/dev/null)"
}}
compdef _caffeup_completion caffeup caffeup.sh
"""
_ASKED = f"env {VARIABLE}=complete_fish _TYPER_COMPLETE_ARGS=(commandline -cp) _TYPER_COMPLETE_FISH_ACTION"
_FISH = "".join(
    f'complete --command {name} --arguments "({_ASKED}=get-args {name})" --condition "{_ASKED}=is-args {name}"\n'
    for name in ("caffeup", "caffeup.sh")
)
SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}


def show(shell: str) -> None:
    """Print the script of a shell; the callback of ``--show-completion``."""
    if not shell:
        return
    if shell not in SCRIPTS:
        raise typer.BadParameter(f"{shell}: choose one of {', '.join(SCRIPTS)}.")
    typer.echo(SCRIPTS[shell], nl=False)
    raise typer.Exit


def trees(incomplete: str) -> list[tuple[str, str]]:
    """Names of trees that can be fetched."""
    from caffeup.app.session import Session
    from caffeup.source.catalogue import trees as known

    return [(one.id, one.title) for one in known(Session().facts) if one.id.startswith(incomplete)]


def ids(incomplete: str) -> list[tuple[str, str]]:
    """Ids that ``explain`` knows."""
    from caffeup.app.session import Session
    from caffeup.diagnose.explain import titles

    return [(name, title) for name, title in titles(Session().facts) if name.startswith(incomplete)]


def forms(incomplete: str) -> list[str]:
    """What ``export`` can write."""
    from caffeup.export.recipe import FORMS

    return [name for name in FORMS if name.startswith(incomplete)]


def figures(incomplete: str) -> list[tuple[str, str]]:
    """Figures that ``gpu explain`` knows."""
    from caffeup.app.session import Session

    return [(one.id, one.title) for one in Session().facts.figures if one.id.startswith(incomplete)]
