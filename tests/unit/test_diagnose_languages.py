"""One error in many wordings leads to one cause."""

from __future__ import annotations

import pytest

from caffeup.diagnose.diagnose import diagnose
from caffeup.diagnose.findings import STOPPED
from caffeup.facts.load import load_facts

FACTS = load_facts()
WORDINGS = {
    "hdf5-header": (
        "src/caffe/net.cpp:9:10: fatal error: 'hdf5.h' file not found",
        "./include/caffe/util/hdf5.hpp:6:18: erreur fatale: hdf5.h : Aucun fichier ou dossier de ce type",
        "./include/caffe/util/hdf5.hpp:6:18: schwerwiegender Fehler: hdf5.h: Datei oder Verzeichnis nicht gefunden",
        "./include/caffe/util/hdf5.hpp:6:10: 致命的エラー: hdf5.h: そのようなファイルやディレクトリはありません",
        "./include/caffe/util/hdf5.hpp:6:18: fatal error: hdf5.h: No existe el archivo o el directorio",
        "./include/caffe/util/hdf5.hpp:6:18: 致命的错误：hdf5.h：没有那个文件或目录",
        "./include/caffe/util/hdf5.hpp:6:10: 치명적인 오류: hdf5.h: 그런 파일이나 디렉터리가 없습니다",
        "./include/caffe/util/hdf5.hpp:6:18: фатальная ошибка: hdf5.h: Нет такого файла или каталога",
        "include/caffe/util/hdf5.hpp:6:10: 嚴重錯誤：hdf5.h：沒有此一檔案或目錄",
    ),
    "openblas-library": (
        "/usr/bin/ld: ne peut trouver -lopenblas",
        "/usr/bin/ld: kann -lopenblas nicht finden",
        "/usr/bin/ld: no se puede encontrar -lopenblas",
        "/usr/bin/ld: -lopenblas が見つかりません",
        "/usr/bin/ld: -lopenblas를 찾을 수 없음",
        "/usr/bin/ld: невозможно найти -lopenblas",
        "/usr/bin/ld: 找不到 -lopenblas: 没有那个文件或目录",
        "ld: library 'openblas' not found",
        "ld: library not found for -lopenblas",
        "ld.lld: error: unable to find library -lopenblas",
        "mold: fatal: library not found: openblas",
    ),
    "opencv4-c-constants": (
        "src/caffe/util/io.cpp:76:34: erreur: ‘CV_LOAD_IMAGE_COLOR’ n'a pas été déclaré dans cette portée",
        "src/caffe/util/io.cpp:76:34: Fehler: »CV_LOAD_IMAGE_COLOR« wurde in diesem Gültigkeitsbereich nicht definiert",
        "src/caffe/util/io.cpp:76:34: error: ‘CV_LOAD_IMAGE_COLOR’ no se declaró en este ámbito",
        "src/caffe/util/io.cpp:76:34: エラー: ‘CV_LOAD_IMAGE_COLOR’ はこのスコープで宣言されていません",
        "src/caffe/util/io.cpp:76:34: 错误：‘CV_LOAD_IMAGE_COLOR’在此作用域中尚未声明",
        "src/caffe/util/io.cpp:76:34: error: ‘CV_LOAD_IMAGE_COLOR’ was not declared in this scope; did you mean ‘cv::IMREAD_COLOR’?",
        "src/caffe/util/io.cpp:76:34: error: use of undeclared identifier 'CV_LOAD_IMAGE_COLOR'",
        'src/caffe/util/io.cpp(76): error: identifier "CV_LOAD_IMAGE_COLOR" is undefined',
        '"src/caffe/util/io.cpp", line 76: error: identifier "CV_LOAD_IMAGE_COLOR" is undefined',
        "#9 12.34 src/caffe/util/io.cpp:76:34: error: 'CV_LOAD_IMAGE_COLOR' was not declared in this scope",
        "2024-01-01 10:00:00,123 - INFO - src/caffe/util/io.cpp:76:34: error: 'CV_LOAD_IMAGE_COLOR' was not declared in this scope",
    ),
    "gpu-out-of-memory": (
        "F20240101 10:00:00.000001 4321 syncedmem.cpp:56] Check failed: error == cudaSuccess (2 vs. 0) out of memory",
        "F0000 00:00:1700000000.123456    4321 syncedmem.cpp:71] Check failed: error == cudaSuccess (2 vs. 0) out of memory",
        "syncedmem.cpp:56] Check failed: error == cudaSuccess (2 vs. 0)  out of memory",
        "CUDA error: out of memory",
    ),
    "no-code-for-card": (
        "im2col.cu:54] Check failed: error == cudaSuccess (98 vs. 0) invalid device function",
        "Check failed: error == cudaSuccess (209 vs. 0)  no kernel image is available for execution on the device",
    ),
    "make-rule-missing": (
        "make: *** Pas de règle pour fabriquer la cible « all ». Arrêt.",
        "make: *** Keine Regel, um „all“ zu erstellen. Schluss.",
        "make: *** No hay ninguna regla para construir el objetivo 'all'.  Alto.",
        "make: *** 没有规则可制作目标“all”。 停止。",
        "make: *** No rule to make target `all'.  Stop.",
    ),
    "program-missing": (
        "/bin/sh: 1: protoc: introuvable",
        "bash: protoc: Befehl nicht gefunden.",
        "bash: protoc: orden no encontrada",
        "make: protoc：命令未找到",
        "make: protoc: No such file or directory",
        "make[1]: /usr/local/cuda/bin/nvcc: Command not found",
    ),
    STOPPED: (
        "make: *** [Makefile:591：.build_release/src/caffe/net.o] 错误 1",
        "make: *** [Makefile:591: .build_release/src/caffe/net.o] Erreur 1",
        "make: *** [Makefile:591: .build_release/src/caffe/net.o] Fehler 1",
        "make: *** [Makefile:591: .build_release/src/caffe/net.o] エラー 1",
        "make: *** [Makefile:591: .build_release/src/caffe/net.o] Ошибка 1",
        "ninja: build stopped: subcommand failed.",
    ),
}


@pytest.mark.parametrize(("cause", "line"), [(cause, line) for cause, lines in WORDINGS.items() for line in lines])
def test_one_error_in_many_wordings(cause: str, line: str) -> None:
    found = diagnose(["CXX src/caffe/a.cpp", line], FACTS)
    assert [one.id for one in found][:1] == [cause]


@pytest.mark.parametrize(
    "line",
    [
        "src/caffe/a.cpp:3:4: Fehler: etwas Neues",
        "src/caffe/a.cpp:3:4: erreur: quelque chose de nouveau",
        "src/caffe/a.cpp:3:4: エラー: 新しいもの",
        "/usr/bin/ld: kann -lnewthing nicht finden",
    ],
)
def test_an_unknown_error_is_seen_in_any_language(line: str) -> None:
    (found,) = diagnose([line], FACTS)
    assert found.id == "log.unknown"
