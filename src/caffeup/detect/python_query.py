"""The script that every Python is asked with: it must run on 2.7 as on 3.14, and imports nothing but the standard library.

It reads versions from files: numpy takes a tenth of a second to import, and a broken module must not end the answer.
"""

from __future__ import annotations

MARK = "caffeup-python "
"""Starts the line with the answer: a sitecustomize may print lines of its own."""

QUERY = r"""
import glob, json, os, re, sys, sysconfig

EXTRA = []
VERSION = re.compile(r"^(?:__version__|(?:full_)?version)\s*(?::\s*\w+\s*)?=\s*(?:version\s*=)?\s*['\"](\d[^'\"]*)['\"]", re.M)

def read(path):
    try:
        with open(path, "rb") as handle:
            return handle.read(200000).decode("utf-8", "replace")
    except (IOError, OSError):
        return ""

def holds_code_for_us(package):
    abi = sysconfig.get_config_var("SOABI") or ""
    tag = re.sub(r"^(cpython-\d+).*", r"\1", abi)
    files = glob.glob(os.path.join(package, "*core", "*multiarray*.so"))
    return not files or not tag or any(tag + "-" in name or tag + "m" in name for name in files)

def version_in(folder, files, name):
    for file in files:
        found = VERSION.search(read(os.path.join(folder, file)))
        if found:
            return found.group(1)
    parent = folder
    for _ in name.split("."):
        parent = os.path.dirname(parent)
    wanted = {"google.protobuf": "protobuf", "skimage": "scikit_image"}.get(name, name)
    for path in sorted(glob.glob(os.path.join(parent, "*-info"))):
        base = os.path.basename(path).replace("-", "_").lower()
        found = re.match(re.escape(wanted) + r"_([0-9][0-9a-z.+]*?)(?:_py[0-9.]+.*)?(?:\.|_)(?:dist|egg)_info$", base)
        if found:
            return found.group(1)
    return ""

def find(name, files):
    for place in [path for path in sys.path if path] + EXTRA:
        folder = os.path.join(place, *name.split("."))
        if not os.path.isfile(os.path.join(folder, "__init__.py")):
            continue
        if place in EXTRA and not holds_code_for_us(folder):
            continue
        return {"folder": folder, "version": version_in(folder, files, name), "path": place if place in EXTRA else ""}
    return {}

def main():
    variables = sysconfig.get_config_vars()
    numpy = find("numpy", ["version.py"])
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
        "protobuf": find("google.protobuf", ["__init__.py"]),
        "skimage": find("skimage", ["__init__.py"]),
    }
    sys.stdout.write("\n" + "caffeup-python " + json.dumps(answer, sort_keys=True) + "\n")

main()
"""


def query(extra: tuple[str, ...] = ()) -> str:
    """The script; ``extra`` are folders with unpacked packages to look through last."""
    return QUERY.replace("EXTRA = []", f"EXTRA = {list(extra)!r}", 1)
