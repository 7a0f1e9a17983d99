"""Writes src/caffeup/facts/nets.toml: which fields and layer types each tree has.

    python bench/net_facts.py bvlc=DIR ssd=DIR yolo=DIR=URL … > src/caffeup/facts/nets.toml

The trees in the order in which they are to be recommended, with a URL where ``caffeup up NAME`` does not get them.
What is written are names, numbers, types and defaults.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from caffeup.net.schema import FieldType, Schema, read_proto, registered_types


def sources(tree: Path) -> Iterator[str]:
    """The sources that may register layers."""
    for path in sorted((tree / "src" / "caffe").rglob("*")):
        if path.suffix in {".cpp", ".cu", ".hpp"} and "test" not in path.parts:
            yield path.read_text(encoding="utf-8", errors="replace")


def written(field: FieldType, trees: list[str], everywhere: list[str]) -> str:
    """``name number type``, ``*`` behind a repeated type, ``=default``, ``@trees`` where not all have it."""
    words = [field.name, str(field.number), field.type + ("*" if field.repeated else "")]
    words += [f"={field.default}"] if field.default else []
    words += ["@" + ",".join(trees)] if trees != everywhere else []
    return " ".join(words)


def rows(schemas: dict[str, Schema], layers: dict[str, set[str]]) -> Iterator[str]:
    """The lines of the table, but for its trees."""
    for message in ordered(list(schema.messages) for schema in schemas.values()):
        having = [tree for tree, schema in schemas.items() if message in schema.messages]
        yield f'\n[[message]]\nid = "{message}"'
        if len(having) < len(schemas):
            yield f'trees = "{" ".join(having)}"'
        yield 'fields = """'
        for name in ordered(list(schemas[tree].messages[message]) for tree in having):
            trees = [tree for tree in having if name in schemas[tree].messages[message]]
            line = written(schemas[trees[0]].messages[message][name], trees, having)
            yield line
        yield '"""'
    for enum in ordered(list(schema.enums) for schema in schemas.values()):
        having = [tree for tree, schema in schemas.items() if enum in schema.enums]
        yield f'\n[[enum]]\nid = "{enum}"\nvalues = """'
        for name in ordered(list(schemas[tree].enums[enum]) for tree in having):
            trees = [tree for tree in having if name in schemas[tree].enums[enum]]
            some = " @" + ",".join(trees) if trees != having else ""
            yield f"{name} {schemas[trees[0]].enums[enum][name]}{some}"
        yield '"""'
    for layer in sorted({name for names in layers.values() for name in names}):
        having = [tree for tree, names in layers.items() if layer in names]
        yield f'\n[[layer]]\nid = "{layer}"'
        if len(having) < len(layers):
            yield f'trees = "{" ".join(having)}"'


def ordered(lists: Iterator[list[str]]) -> list[str]:
    """All names, each once, in the order of the first tree that has it."""
    return list(dict.fromkeys(name for names in lists for name in names))


def main(arguments: list[str]) -> None:
    """Read the trees, print the table."""
    trees = [argument.split("=", 2) for argument in arguments]
    schemas, layers = {}, {}
    for name, folder in ((each[0], Path(each[1])) for each in trees):
        proto = folder / "src" / "caffe" / "proto" / "caffe.proto"
        schemas[name] = read_proto(proto.read_text(encoding="utf-8", errors="replace"))
        layers[name] = registered_types(sources(folder))
    print("# Written by bench/net_facts.py. The trees that have a field, a value or a layer stand behind it where not all do.")
    print("# The trees stand in the order in which they are recommended.")
    for name, _, *url in trees:
        print(f'\n[[tree]]\nid = "{name}"')
        if url:
            print(f'url = "{url[0]}"')
    for line in rows(schemas, layers):
        print(line)


if __name__ == "__main__":
    main(sys.argv[1:])
