"""Options that several commands share."""

from __future__ import annotations

from typing import Annotated, Optional

import typer

from caffeup.cli import completion

Tree = Annotated[str, typer.Argument(help="Folder of the tree; the one in or below the current folder where there is just one.")]
TreeOption = Annotated[str, typer.Option("--tree", help="Folder of the tree.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON on stdout; words for people go to stderr.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Answer every question with yes.")]
Prefix = Annotated[
    Optional[list[str]], typer.Option("--prefix", metavar="DIR", help="A root of hand-built or unpacked libraries (repeatable).")
]
Deps = Annotated[
    str, typer.Option("--deps", metavar="WHERE", help="user: missing packages go into your data folder; needs no root.")
]
Source = Annotated[
    str,
    typer.Argument(
        help="ssd (default), or another name that --list shows; a git URL, a folder, or an archive.",
        autocompletion=completion.trees,
    ),
]
Into = Annotated[str, typer.Option("--into", metavar="DIR", help="Folder for the tree; by default caffe-<name> here.")]
Cpu = Annotated[bool, typer.Option("--cpu", help="Build without CUDA.")]
NoCudnn = Annotated[bool, typer.Option("--no-cudnn", help="Build with CUDA but without cuDNN.")]
NoOpencv = Annotated[bool, typer.Option("--no-opencv", help="Build without OpenCV.")]
Arch = Annotated[str, typer.Option("--arch", metavar="LIST", help="Compute capabilities to build for: native, all, or 8.6,8.9.")]
Cuda = Annotated[str, typer.Option("--cuda", metavar="ROOT", help="The toolkit to use: its root, its version, or wheels.")]
Python = Annotated[str, typer.Option("--python", metavar="EXE", help="The Python to build pycaffe for; none: no pycaffe.")]
Blas = Annotated[str, typer.Option("--blas", metavar="NAME", help="open, atlas or mkl.")]
Tf32 = Annotated[bool, typer.Option("--tf32", help="Let cuDNN round to TF32: faster, less exact.")]
TreeCudnnConv = Annotated[bool, typer.Option("--tree-cudnn-conv", help="Keep the tree's own convolution through cuDNN.")]
NoAutoDepthwise = Annotated[
    bool, typer.Option("--no-auto-depthwise", help="Depthwise layers only where a prototxt names their type.")
]
ReplaceDepthwise = Annotated[
    bool, typer.Option("--replace-depthwise", help="Put caffeup's depthwise layer in the place of the tree's own.")
]
Jobs = Annotated[
    Optional[int],
    typer.Option(
        "--jobs", "-j", metavar="N", min=1, max=1024, help="Compilers at a time; by default what cores and memory allow."
    ),
]
NoTests = Annotated[bool, typer.Option("--no-tests", help="Do not build and run Caffe's own tests.")]
Distribute = Annotated[bool, typer.Option("--distribute", help="Also fill the tree's folder to distribute.")]
Force = Annotated[
    Optional[list[str]], typer.Option("--force", metavar="ID", help="Go on in spite of this conflict (repeatable).")
]
