"""Small trees, facts and plans for the tests of the patch engine."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Optional

from caffeup.facts.tables import Facts
from caffeup.model.fix import Fix
from caffeup.model.plan import Link, Plan, PlannedFix, Request


class Rows:
    """A reader of facts that has fixes only."""

    def __init__(self, fixes: tuple[Fix, ...]) -> None:
        self._fixes = fixes

    def table(self, _name: str, kind: type[Any]) -> Any:
        return kind()

    def fixes(self) -> tuple[Fix, ...]:
        return self._fixes


def facts_of(*fixes: Fix) -> Facts:
    return Facts(reader=Rows(fixes))


def fix(id_: str, *remedies: Any) -> Fix:
    return Fix(id=id_, title=f"title of {id_}", remedy=tuple(remedies), source=("a test",))


def plan_of(root: Path, *fixes: str, links: Optional[dict[str, str]] = None, **fields: Any) -> Plan:
    return Plan(
        tree=str(root),
        fork="unknown",
        request=Request(),
        gpu=False,
        fixes=tuple(PlannedFix(id=name, because=f"because of {name}") for name in fixes),
        links=tuple(Link(name=name, target=target) for name, target in (links or {}).items()),
        **fields,
    )


def snapshot(root: Path, *, ours: bool = False) -> dict[str, object]:
    """Everything in the tree: content, mode and time; caffeup's own folder only when asked for."""
    found: dict[str, object] = {}
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            relative = str(path.relative_to(root))
            if relative.startswith(".caffeup/") and not ours:
                continue
            status = path.lstat()
            content: object = str(path.readlink()) if path.is_symlink() else path.read_bytes()
            found[relative] = (content, status.st_mode, status.st_mtime_ns)
    return found


def tree_with_factory(root: Path, factory: str) -> Path:
    """As much of a tree as inspection and the layers' edits look at, with this layer factory."""
    for path, text in {
        "Makefile": "include Makefile.config\n",
        "Makefile.config.example": "",
        "include/caffe/layer.hpp": "",
        "include/caffe/blob.hpp": "",
        "include/caffe/layer_factory.hpp": "  typedef shared_ptr<Layer<Dtype> > (*Creator)(const LayerParameter&);\n",
        "src/caffe/proto/caffe.proto": 'syntax = "proto2";\n',
        "src/caffe/layer_factory.cpp": factory,
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


EMPTIED_DECONVOLUTION = """template <typename Dtype>
void CuDNNDeconvolutionLayer<Dtype>::LayerSetUp(int given) {
  // A comment that stays one.
  set_up(given);
}

template <typename Dtype>
void CuDNNDeconvolutionLayer<Dtype>::Reshape(int given) {
  DeconvolutionLayer<Dtype>::Reshape(given);
  // bottom_offset_ = this->bottom_dim_ / this->group_;
  //
  // // Why it is so.
  // for (int i = 0; i < given; i++) {
  //   set(i);

  // }
}

template <typename Dtype>
CuDNNDeconvolutionLayer<Dtype>::~CuDNNDeconvolutionLayer() {
  // Neither is this touched.
}
"""
