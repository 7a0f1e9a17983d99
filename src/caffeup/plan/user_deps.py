"""Whether missing packages can go into the user's own folder, and what else can be done where they cannot."""

from __future__ import annotations

from caffeup.model.finding import Finding
from caffeup.plan.case import USER, Case
from caffeup.plan.part import conflict, remedy

_TOOLS = ("make", "g++")
_CONDA = "openblas boost protobuf glog gflags hdf5 opencv leveldb lmdb snappy"


def check_user_deps(case: Case, packages: tuple[str, ...]) -> tuple[Finding, ...]:
    """What is in the way of ``--deps user``: nothing where nothing is missing."""
    if case.request.deps != USER or not packages:
        return ()
    if not case.unpacking_manager:
        return (_unknown(case),)
    lacking = [name for name in _TOOLS if name in packages]
    return (_tools(lacking),) if lacking else ()


def _unknown(case: Case) -> Finding:
    system = case.machine.system
    called = f"{system.distro} {system.distro_version}".strip()
    ways = (
        remedy(
            "conda's packages need no root: make an environment with them, and name it",
            f"micromamba create -y -p ~/caffe-deps -c conda-forge {_CONDA}",
            case.again("--prefix", "~/caffe-deps", "--python", "none"),
        ),
        remedy("name a folder with libraries that you built or unpacked yourself", case.again("--prefix", "DIR")),
        remedy("let somebody with root install the packages", case.again("--dry-run")),
    )
    why = "apt can be asked with lists of one's own, and its packages can be used from any folder; the other managers need root."
    return conflict("deps-user-unknown", f"--deps user is for Debian and its family; this is {called}", why, remedies=ways)


def _tools(lacking: list[str]) -> Finding:
    """A compiler expects its files, and those of the C library, in the system's folders."""
    ways = (
        remedy("let somebody with root install them", f"sudo apt-get install -y {' '.join(lacking)}"),
        remedy("or put them on PATH yourself, from conda for instance"),
    )
    title = f"--deps user brings libraries and Python modules; {' and '.join(lacking)} must be there"
    return conflict("deps-user-tools", title, "A build calls them by their place in the system.", remedies=ways)
