"""How a toolkit is reached from the tree: links, and folders that Caffe's Makefile does not add by itself."""

from __future__ import annotations

from posixpath import dirname

from caffeup.model.base import Value
from caffeup.model.machine import Toolkit, ToolkitLayout
from caffeup.model.plan import Link
from caffeup.plan.case import Case
from caffeup.plan.places import LINKS, Placed, linked_anyway, loaded_anyway, placed, searched_anyway, under


class Reached(Value, kw_only=True):
    """A toolkit's place as the tree sees it."""

    include_dirs: tuple[str, ...] = ()
    library_dirs: tuple[str, ...] = ()
    links: tuple[Link, ...] = ()
    run_paths: tuple[str, ...] = ()


def reach(best: Toolkit, case: Case) -> Reached:
    """Links to it, and the folders that Caffe's Makefile does not add by itself."""
    system = case.machine.system
    includes = [path for path in best.include_dirs if not searched_anyway(path, system) and not case.mixed(path)]
    libraries = [path for path in best.library_dirs if not linked_anyway(path, system) and not path.endswith("/stubs")]
    libraries = [path for path in libraries if not case.mixed(path)]
    if (
        best.nvcc == f"{best.root}/bin/nvcc"
        and best.layout is not ToolkitLayout.CONDA
        and best.root not in ("/usr", "/usr/local")
    ):
        return _whole(best, includes, libraries, case)
    links = [Link(name="cuda/bin", target=dirname(best.nvcc) or best.root)]
    links += [Link(name="cuda/include", target=includes[0])] if includes else []
    links += [Link(name="cuda/lib64", target=libraries[0])] if libraries else []
    more_includes = _placed(includes[1:], "cuda-include", case)
    more_libraries = _placed(libraries[1:], "cuda-lib", case)
    runs = (f"{LINKS}/cuda/lib64",) if libraries and not loaded_anyway(libraries[0], system) else ()
    return Reached(
        include_dirs=tuple(one.name for one in more_includes),
        library_dirs=tuple(one.name for one in more_libraries),
        links=(*links, *(link for one in (*more_includes, *more_libraries) for link in one.links)),
        run_paths=runs,
    )


def _whole(best: Toolkit, includes: list[str], libraries: list[str], case: Case) -> Reached:
    """The root as one link; its include, lib64 and lib are added by the Makefile."""
    own_includes = [(under(path, best.root, "cuda"), path) for path in includes]
    own_libraries = [(under(path, best.root, "cuda"), path) for path in libraries]
    other_includes = _placed([path for name, path in own_includes if name is None], "cuda-include", case)
    other_libraries = _placed([path for name, path in own_libraries if name is None], "cuda-lib", case)
    usual = (f"{LINKS}/cuda/lib64", f"{LINKS}/cuda/lib")
    inner_includes = [name for name, _ in own_includes if name is not None and name != f"{LINKS}/cuda/include"]
    inner_libraries = [name for name, _ in own_libraries if name is not None]
    runs = inner_libraries or list(usual[:1])
    return Reached(
        include_dirs=(*inner_includes, *(one.name for one in other_includes)),
        library_dirs=(*(name for name in inner_libraries if name not in usual), *(one.name for one in other_libraries)),
        links=(Link(name="cuda", target=best.root), *(link for one in (*other_includes, *other_libraries) for link in one.links)),
        run_paths=(*runs, *(one.name for one in other_libraries)),
    )


def _placed(paths: list[str], label: str, case: Case) -> list[Placed]:
    return [placed(path, f"{label}-{at}", case.machine.prefixes) for at, path in enumerate(paths)]
