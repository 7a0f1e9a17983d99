"""The plan: all decisions in their order, put together into one value. Pure."""

from __future__ import annotations

from dataclasses import replace

import msgspec
from packaging.version import Version

from caffeup.facts.tables import Facts
from caffeup.model.finding import Finding, Severity
from caffeup.model.machine import GpuState, Library, Machine
from caffeup.model.plan import GPU_TESTS, ConfigLine, Plan, Request
from caffeup.model.tree import Tree
from caffeup.plan.arch import Arch, choose_arch
from caffeup.plan.blas import choose_blas
from caffeup.plan.case import Case
from caffeup.plan.compiler import Chosen, choose_compiler
from caffeup.plan.cudnn import Cudnn, choose_cudnn
from caffeup.plan.cudnn_conv import choose_cudnn_conv
from caffeup.plan.depthwise import choose_depthwise
from caffeup.plan.fixes import Decided, select_fixes, shim_lines
from caffeup.plan.jobs import choose_jobs
from caffeup.plan.libraries import choose_libraries
from caffeup.plan.mode import choose_mode
from caffeup.plan.names import stand_ins
from caffeup.plan.nccl import choose_nccl
from caffeup.plan.packages import missing_programs
from caffeup.plan.part import Part, decision, join, line
from caffeup.plan.protoc import choose_protoc
from caffeup.plan.python import Pycaffe, choose_python, lacks
from caffeup.plan.reproducible import reproducible
from caffeup.plan.run_paths import run_path_lines
from caffeup.plan.standard import choose_standard
from caffeup.plan.toolkit import Choice, choose_toolkit
from caffeup.plan.tree import build_dir, check_tree, tree_lines
from caffeup.plan.user_deps import check_user_deps
from caffeup.plan.wheels import machine_with, to_lay_out, told_before

_NOT_IN_CPU_BUILD = "*GPU*:*CuDNN*"


def make_plan(machine: Machine, tree: Tree, request: Request, facts: Facts) -> Plan:
    """Decide everything about building one tree on one machine. Touches nothing; conflicts are listed, never raised."""
    case, told = _with_wheels(Case(machine=machine, tree=tree, request=request, facts=facts))
    mode = choose_mode(case)
    choice = choose_toolkit(case) if mode.gpu else Choice()
    toolkit = choice.toolkit
    arch = choose_arch(case, toolkit) if toolkit is not None else Arch()
    compiler = choose_compiler(case, toolkit)
    cudnn = choose_cudnn(case, toolkit, arch.sass) if toolkit is not None or not mode.gpu else Cudnn()
    libraries = choose_libraries(case)
    blas = choose_blas(case)
    python = choose_python(case)
    protobuf = next((one for one in libraries.used if one.name == "protobuf"), None)
    protoc = choose_protoc(case, protobuf)
    used = (*libraries.used, *((blas.library,) if blas.library is not None else ()))
    standard = choose_standard(case, compiler.compiler, toolkit, used)
    nccl = choose_nccl(case, gpu=toolkit is not None)
    jobs = choose_jobs(case, gpu=toolkit is not None, targets=len(arch.sass))
    conv_wishes, conv_part = choose_cudnn_conv(case, cudnn.version)
    depthwise = choose_depthwise(case, gpu=mode.gpu)
    decided = _decided(case, choice, compiler, cudnn, used, python, gpu=mode.gpu)
    fixes = select_fixes(facts.fixes, msgspec.structs.replace(decided, wishes=(*conv_wishes, *depthwise.wishes)))
    cuda_folders = _cuda_folders(choice, cudnn)
    whole = join(
        (
            mode.part, told, choice.part, arch.part, compiler.part, cudnn.part, conv_part, cuda_folders, blas.part,
            libraries.part, python.part, protoc.part, standard.part, nccl, depthwise.part, jobs.part, missing_programs(case),
            tree_lines(case, gpu=toolkit is not None), reproducible(case, toolkit),
        )
    )  # fmt: skip
    renamed = stand_ins(case, used, " ".join(_words(blas.part.config, "BLAS")), blas.library)
    config = (
        *shim_lines(tree, libraries=fixes.shim_libraries or bool(renamed)).config,
        *whole.config,
        *fixes.part.config,
        *run_path_lines(case, whole.run_paths),
    )
    packages = tuple(dict.fromkeys((*whole.packages, *fixes.part.packages)))
    conflicts = (*check_tree(case), *whole.conflicts, *check_user_deps(case, packages))
    test_filter, tested = _tests(case, gpu=mode.gpu)
    return Plan(
        tree=tree.root,
        fork=tree.fork,
        request=request,
        gpu=mode.gpu,
        cudnn=cudnn.version is not None,
        sass=arch.sass,
        ptx=arch.ptx,
        decisions=(*whole.decisions, *tested.decisions),
        config=_tidy(config, case),
        links=tuple(sorted(whole.links, key=lambda one: one.name)),
        fixes=fixes.fixes,
        stand_ins=renamed,
        conflicts=tuple(one for one in conflicts if one.id not in request.force),
        notes=(*(_downgraded(one) for one in conflicts if one.id in request.force), *whole.notes),
        lay_out=case.lay_out,
        packages=packages,
        compiler=compiler.compiler.path if compiler.compiler is not None else "",
        protoc=protoc.program.path if protoc.program is not None else "",
        python=python.python.executable if python.python is not None and not lacks(python.python) else "",
        python_paths=python.python.paths if python.python is not None else (),
        run_paths=whole.run_paths,
        jobs=jobs.jobs,
        make_env=whole.make_env,
        build_dir=build_dir(case),
        test_filter=test_filter,
    )


def _with_wheels(case: Case) -> tuple[Case, Part]:
    release = to_lay_out(case)
    if release is None:
        return case, Part()
    return replace(case, machine=machine_with(release, case), lay_out=release.id), told_before(release, case)


def _decided(
    case: Case, choice: Choice, compiler: Chosen, cudnn: Cudnn, used: tuple[Library, ...], python: Pycaffe, *, gpu: bool
) -> Decided:
    versions: dict[str, Version] = {}
    unknown = []
    if choice.toolkit is not None:
        versions["cuda"] = choice.toolkit.version
    if cudnn.version is not None:
        versions["cudnn"] = cudnn.version
    if compiler.compiler is not None:
        versions[compiler.compiler.kind] = compiler.compiler.version
    for one in used:
        if one.version is not None:
            versions[one.name] = one.version
        else:
            unknown.append(one.name)
    if python.python is not None:
        versions["python"] = python.python.version
        modules = (("numpy", python.python.numpy), ("skimage", python.python.skimage))
        versions.update({name: version for name, version in modules if version is not None})
    return Decided(versions=versions, unknown=tuple(unknown), gpu=gpu, system=case.machine.system, tree=case.tree)


def _cuda_folders(choice: Choice, cudnn: Cudnn) -> Part:
    """Folders of cuDNN before the toolkit's, which may hold another cuDNN."""
    lines = []
    for key, of_cudnn, of_toolkit in (
        ("INCLUDE_DIRS", cudnn.include_dirs, choice.include_dirs),
        ("LIBRARY_DIRS", cudnn.library_dirs, choice.library_dirs),
    ):
        if of_cudnn:
            lines.append(line(key, *of_cudnn, because=f"cuDNN {cudnn.version}", operator="+="))
        if of_toolkit and choice.toolkit is not None:
            because = f"CUDA {choice.toolkit.version}: a folder that nvcc knows and the Makefile does not"
            lines.append(line(key, *of_toolkit, because=because, operator="+="))
    return Part(config=tuple(lines))


def _words(lines: tuple[ConfigLine, ...], key: str) -> tuple[str, ...]:
    return next((one.value for one in lines if one.key == key), ())


def _tests(case: Case, *, gpu: bool) -> tuple[str, Part]:
    """Which tests run: gtest's negative filter, and the decision."""
    without = "without GPU tests"
    if not gpu:
        left_out, value, because = _NOT_IN_CPU_BUILD, without, "a build without CUDA"
    elif case.machine.graphics.state is GpuState.PRESENT:
        left_out, value, because = "", "all", "there is a GPU"
    else:
        left_out, value, because = GPU_TESTS, without, "no GPU is visible here"
    if not case.request.tests:
        value, because = "none", "asked for with --no-tests"
    return left_out, Part(decisions=(decision("tests", value, because),))


def _tidy(lines: tuple[ConfigLine, ...], case: Case) -> tuple[ConfigLine, ...]:
    """Only keys that the tree reads; the first line of a key sets it, the later ones add; no folder twice."""
    seen: dict[str, set[str]] = {}
    tidy = []
    for one in lines:
        if not (one.override or one.key.startswith("export ") or case.reads(one.key)):
            continue
        had = seen.get(one.key)
        words = one.value
        if one.key in ("INCLUDE_DIRS", "LIBRARY_DIRS"):
            words = tuple(word for word in dict.fromkeys(one.value) if had is None or word not in had)
            if not words:
                continue
        operator = one.operator if had is not None or one.operator != "+=" else ":="
        seen.setdefault(one.key, set()).update(words)
        tidy.append(
            msgspec.structs.replace(one, value=words, operator=operator, override=one.override or case.must_override(one.key))
        )
    return tuple(tidy)


def _downgraded(one: Finding) -> Finding:
    return msgspec.structs.replace(one, severity=Severity.WARNING, why=f"{one.why} (--force {one.id})".strip())
