"""What the templates are filled with."""

from __future__ import annotations

from jinja2 import BaseLoader, Environment, StrictUndefined

from caffeup.export import quoting
from caffeup.export.recipe import Recipe, configure_lines, pinned


def render(recipe: Recipe, template: str, script: str = "") -> str:
    """The template filled; ``script`` is the shell script that a container runs."""
    environment = Environment(
        loader=BaseLoader(),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - a shell's quotes are put by the filters
    )
    environment.globals.clear()
    environment.filters = {"word": quoting.word, "words": quoting.words, "remark": quoting.remark}
    plan = recipe.plan
    paths = {name: value for name, value in plan.make_env if name == "PATH"}
    return environment.from_string(template).render(
        recipe=recipe,
        plan=plan,
        origin=recipe.origin,
        system=recipe.system,
        packages=recipe.packages,
        versioned=pinned(recipe.packages),
        configure=configure_lines(recipe) if not script else "",
        path=paths.get("PATH", ""),
        make_env=tuple((name, value) for name, value in plan.make_env if name != "PATH"),
        toolkit=next((link.target for link in plan.links if link.name == "cuda"), ""),
        needed=tuple(dict.fromkeys(one for one in (plan.compiler, *(link.target for link in plan.links)) if one)),
        test_filter=":".join(one for one in (plan.test_filter, *recipe.failing) if one),
        left_out=", ".join(recipe.left_out),
        script=script,
        script_end=quoting.ending(script),
        script_base64=quoting.base64_lines(script.encode("utf-8", "surrogateescape")),
    )
