"""What compilers, linkers, make and shells say in other languages than English, in the words that they have in English."""

from __future__ import annotations

import re

# What it is in English, and as which texts it is said elsewhere; tried in order, the longer phrase before the shorter one.
_PHRASES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "fatal error: ",
        (
            "(?:erreur fatale|schwerwiegender Fehler|error fatal|errore irreversibile|erro fatal) ?: *",
            "(?:致命的エラー|치명적인? 오류|фатальная ошибка|критическая ошибка|嚴重錯誤|致命錯誤) *[:：] *",
        ),
    ),
    ("error: ", (r"(?:\berreur|\bFehler|\berrore|\berro|エラー|오류|ошибка|錯誤) ?[:：] *",)),
    (": ", (" ?: (?=Aucun fichier)", "[:：] *(?=沒有|そのような|그런)")),
    (
        "No such file or directory",
        (
            "Aucun fichier ou (?:dossier|répertoire) de ce (?:type|nom)",
            "Datei oder Verzeichnis nicht gefunden",
            "No existe el (?:archivo|fichero) o el directorio",
            "File o directory non esistente",
            "Arquivo ou diretório (?:inexistente|não encontrado)",
            "そのようなファイルやディレクトリはありません",
            "그런 파일이나 디렉터리가 없습니다",
            "Нет такого файла или каталога",
            "沒有(?:此一|這個|那個)檔案或目錄",
        ),
    ),
    (
        " was not declared in this scope",
        (
            " *n['’]a pas été déclarée? dans cette portée",
            " *wurde in diesem Gültigkeitsbereich nicht (?:definiert|deklariert)",
            " *no se declaró en este ámbito",
            " *はこのスコープで宣言されていません",
            " *(?:이|가) 이 범위에서 선언되지 않았습니다",
            " *не (?:был[ао]? )?(?:объявлен|описан)[ао]? в (?:этой|данной) области видимости",
            " *在此作用域中尚未宣告",
        ),
    ),
    (
        "cannot find ",
        (
            "(?:ne peut trouver|impossible de trouver|no se puede encontrar) (?=-l)",
            "(?:impossibile trovare|невозможно найти|não foi possível localizar) (?=-l)",
            "找不到 *(?=-l)",
        ),
    ),
    (r"cannot find \1", (r"kann (-l\S+) nicht finden",)),
    (r"cannot find \1", (r"(-l\S+) kann nicht gefunden werden",)),
    (r"cannot find \1", (r"(-l[\w.+-]+) *(?:が見つかりません|を見付けられません|[를을] 찾을 수 없(?:음|습니다))",)),
    (
        "undefined reference to ",
        ("référence indéfinie (?:à|vers) +", "(?:nicht definierter|undefinierter) Verweis auf +", "неопределённая ссылка на +"),
    ),
    (r"undefined reference to \1", ("referencia a ('[^']+') sin definir",)),
    (r"undefined reference to \1", ("('[^']+') *(?:に対する定義されていない参照です|への未定義参照です)",)),
    (r"undefined reference to \1", ("('[^']+')에 대한 정의되지 않은 참조(?:입니다)?",)),
    (
        "No rule to make target ",
        (
            "Pas de règle pour fabriquer la cible *",
            "No hay (?:ninguna )?regla para (?:construir|hacer) el objetivo *",
            "Нет правила для сборки цели *",
            "沒有規則可製作目標 *",
        ),
    ),
    (r"No rule to make target \1", ("Keine Regel,? um ('[^']+') zu (?:erstellen|erzeugen)",)),
    (r"No rule to make target \1", ("ターゲット *('[^']+') *を *make *するルールがありません",)),
    ("Stop.", ("(?:Arrêt|Schluss|Alto|Останов|中止|停止)[.。]*$",)),
    (
        "command not found",
        (
            "(?:commande )?introuvable$",
            r"(?:Befehl|Kommando) nicht gefunden\.?$",
            "orden no encontrada$",
            "コマンドが見つかりません$",
            "(?:команда )?не найден[ао]?$",
            "명령(?:어)?를 찾을 수 없(?:음|습니다)$",
            "comando (?:non trovato|não encontrado)$",
        ),
    ),
    (
        "Segmentation fault",
        (
            "Erreur de segmentation",
            "Speicherzugriffsfehler",
            "Violación de segmento",
            "セグメンテーション違反",
            "세그멘테이션 오류",
        ),
    ),
    ("Killed", ("Processus arrêté$", r"\bGetötet$", "강제종료", "強制終了")),
    (
        "No space left on device",
        (
            "Aucun espace disponible sur le périphérique",
            "Auf dem Gerät ist kein Speicherplatz mehr verfügbar",
            "No queda espacio en el dispositivo",
            "デバイスに空き領域がありません",
            "裝置上已無多餘空間",
        ),
    ),
)
_COMPILED = tuple((re.compile("|".join(texts)), words) for words, texts in _PHRASES)

KEYWORDS = (
    *("erreur", "Fehler", "nicht gefunden", "introuvable", "no se puede", "kann -l", "ne peut trouver", "Keine Regel", "No hay"),
    *("Pas de r", "orden no", "Verweis", "comando n", "impossib"),
)
"""What a line of these languages holds that plain ASCII can write, to be found among others."""

OTHER_SCRIPTS = (
    *("エラー", "오류", "ошибка", "錯誤", "見つかりません", "없습니다", "없음", "невозможно", "не найден", "沒有"),
    *("未定義", "違反", "宣言されて"),
)
"""The same in other scripts."""

_ASCII = (*KEYWORDS, "errore", "erro", "no se ", "No existe", "Schluss", "Alto", "error fatal", "kann nicht", "referencia")


def english(said: str) -> str:
    """The line with what is known of it in English."""
    if said.isascii() and not any(word in said for word in _ASCII):
        return said
    for pattern, words in _COMPILED:
        said = pattern.sub(words, said)
    return said
