"""The script that every Python is asked with: it must run on 2.7 as on 3.14, and imports nothing but the standard library.

It reads versions from files: numpy takes a tenth of a second to import, and a broken module must not end the answer. Nor does
it import json, re or glob: that would be a third of its time, on every Python of the machine.
"""

from __future__ import annotations

MARK = "caffeup-python "
"""Starts the line with the answer: a sitecustomize may print lines of its own."""

QUERY = r"""
import os, sys, sysconfig

GIVEN = []
EXTRA = [os.fsdecode(place) if hasattr(os, "fsdecode") else place for place in GIVEN]
NAMES = ("__version__", "version", "full_version")

def listed(folder):
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []

def lines(path):
    try:
        with open(path, "rb") as handle:
            return handle.read(200000).decode("utf-8", "replace").splitlines()
    except (IOError, OSError):
        return []

def holds_code_for_us(package):
    tag = "-".join((sysconfig.get_config_var("SOABI") or "").split("-")[:2])
    files = [name for core in ("_core", "core") for name in listed(os.path.join(package, core))]
    code = [name for name in files if "multiarray" in name and name.endswith(".so")]
    return not code or not tag or any("." + tag in name for name in code)

def version_in(file, parent, project):
    for line in lines(file):
        name, sign, value = line.partition("=")
        value = value.split("=")[-1].strip().strip("'\"")
        if sign and name.split(":")[0].strip() in NAMES and name[:1].strip() and value[:1].isdigit():
            return value.split("'")[0].split('"')[0]
    for name in listed(parent):
        if name.lower().replace("-", "_").startswith(project + "_") and name.endswith("-info"):
            return name[len(project) + 1:].rsplit(".", 1)[0].split("-")[0]
    return ""

def find(name, file, project):
    for place in [path for path in sys.path if path] + EXTRA:
        folder = os.path.join(place, *name.split("."))
        module = folder + ".py"
        if os.path.isfile(module):
            folder, inside = place, module
        elif os.path.isfile(os.path.join(folder, "__init__.py")):
            inside = os.path.join(folder, file)
        else:
            continue
        if place in EXTRA and not holds_code_for_us(folder):
            continue
        version = version_in(inside, place, project)
        return {"folder": folder, "version": version, "path": place if place in EXTRA else ""}
    return {}

def encoded(value):
    if isinstance(value, dict):
        return "{" + ", ".join('"%s": %s' % (key, encoded(value[key])) for key in sorted(value)) + "}"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    escaped = "".join(" " if letter < " " else letter for letter in value)
    return '"' + escaped.replace("\\", "\\\\").replace('"', '\\"') + '"'

def main():
    variables = sysconfig.get_config_vars()
    numpy = find("numpy", "version.py", "numpy")
    if numpy:
        for inner in ("_core", "core"):
            include = os.path.join(numpy["folder"], inner, "include")
            if os.path.isfile(os.path.join(include, "numpy", "arrayobject.h")):
                numpy["include"] = include
                break
    number = variables.get("LDVERSION") or "%d.%d" % sys.version_info[:2]
    folders = [variables.get("LIBDIR") or "", variables.get("LIBPL") or ""]
    if variables.get("MULTIARCH"):
        folders.insert(0, os.path.join(folders[0], variables["MULTIARCH"]))
    library = ""
    for folder in folders:
        if folder and os.path.exists(os.path.join(folder, "libpython%s.so" % number)):
            library = folder
            break
    include = variables.get("INCLUDEPY") or sysconfig.get_path("include") or ""
    answer = {
        "version": "%d.%d.%d" % sys.version_info[:3],
        "stage": {"alpha": "a", "beta": "b", "candidate": "rc"}.get(sys.version_info[3], ""),
        "serial": sys.version_info[4],
        "implementation": getattr(getattr(sys, "implementation", None), "name", "cpython"),
        "prefix": sys.prefix,
        "base_prefix": getattr(sys, "real_prefix", None) or getattr(sys, "base_prefix", sys.prefix),
        "include": include if os.path.isfile(os.path.join(include, "Python.h")) else "",
        "number": number,
        "library_dir": library,
        "conda": os.path.isdir(os.path.join(sys.prefix, "conda-meta")),
        "numpy": numpy,
        "protobuf": find("google.protobuf", "__init__.py", "protobuf"),
        "skimage": find("skimage", "__init__.py", "scikit_image"),
        "six": find("six", "", "six"),
    }
    line = "\ncaffeup-python " + encoded(answer) + "\n"
    getattr(sys.stdout, "buffer", sys.stdout).write(line if isinstance(line, bytes) else line.encode("utf-8", "surrogateescape"))

main()
"""


def query(extra: tuple[str, ...] = ()) -> str:
    """The script; ``extra`` are folders with unpacked packages to look through last."""
    places = [place.encode("utf-8", "surrogateescape") for place in extra]  # bytes: Python 2.7 and 3.6 know only ASCII here
    return QUERY.replace("GIVEN = []", f"GIVEN = {places!r}", 1)
