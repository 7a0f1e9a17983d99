"""All probes, side by side."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from caffeup.detect.compilers import probe_compilers
from caffeup.detect.cudnn import probe_cudnn
from caffeup.detect.gpus import probe_graphics
from caffeup.detect.laid_out import wheels_root
from caffeup.detect.libraries import probe_libraries
from caffeup.detect.mixtures import mixture_findings
from caffeup.detect.programs import probe_programs
from caffeup.detect.protocs import probe_protocs
from caffeup.detect.pythons import probe_pythons
from caffeup.detect.system import probe_system
from caffeup.detect.toolkits import probe_toolkits
from caffeup.detect.unpacked import is_unpacked
from caffeup.facts.tables import Facts
from caffeup.host import Host
from caffeup.model.machine import Machine, Missing


def detect(host: Host, facts: Facts, prefixes: tuple[str, ...] = (), python: str = "", cuda: str = "") -> Machine:
    """Everything about the machine; the same machine always gives the same value.

    ``python`` and ``cuda`` are what the user named: they are looked at wherever they lie.
    """
    system = probe_system(host)
    with ThreadPoolExecutor(max_workers=8) as pool:
        compilers_later = pool.submit(probe_compilers, host)
        graphics_later = pool.submit(probe_graphics, host, facts, system)
        programs_later = pool.submit(probe_programs, host)
        toolkits_later = pool.submit(probe_toolkits, host, facts, system, prefixes, cuda)
        protocs_later = pool.submit(probe_protocs, host, system, prefixes)
        libraries = probe_libraries(host, system, facts.libraries, prefixes)
        pythons = probe_pythons(host, system, libraries.libraries, prefixes, python)
        toolkits = toolkits_later.result()
        cudnn = probe_cudnn(host, system, toolkits.toolkits, prefixes)
        graphics, graphics_findings = graphics_later.result()
        compilers = compilers_later.result()
        own_protocs, broken_protocs = protocs_later.result()
        programs, missing_programs = programs_later.result()
    programs = (*own_protocs, *programs)
    mixtures = mixture_findings(host, libraries.libraries, [one for one in programs if one.name == "protoc"], pythons.pythons)
    missing = (*toolkits.missing, *cudnn.missing, *compilers.missing, *missing_programs, *libraries.missing, *pythons.missing)
    if broken_protocs:
        missing = (*missing, Missing(what="protoc in a prefix", tried=broken_protocs))
    return Machine(
        system=system,
        graphics=graphics,
        toolkits=toolkits.toolkits,
        cudnn_headers=cudnn.headers,
        cudnn_libraries=cudnn.libraries,
        compilers=compilers.compilers,
        programs=programs,
        libraries=libraries.libraries,
        pythons=pythons.pythons,
        missing=missing,
        findings=(*graphics_findings, *toolkits.findings, *cudnn.findings, *compilers.findings, *libraries.findings, *mixtures),
        prefixes=prefixes,
        unpacked=next((one for one in prefixes if is_unpacked(host, one)), ""),
        wheels_root=wheels_root(host, facts, system),
    )
