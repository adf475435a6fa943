"""Configuration files with other values: comments and order stay, whole file or not at all."""

from __future__ import annotations

import json
import os
import re
import stat
import tomllib
from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from vertibayes_protocols.deployment.tables import TomlFile
from vertibayes_protocols.storage.whole_file import replacing

TEXT = r"""("(?:[^"\\]|\\.)*"|'[^']*')"""


def with_texts(file: TomlFile, texts: Mapping[tuple[str, str], str]) -> TomlFile:
    """Return a file with other texts at some keys; nothing is written."""
    changed = file
    for (table, key), text in texts.items():
        values: dict[str, Any] = deepcopy(dict(changed.values))
        values.setdefault(table, {})[key] = text
        new = _with_text(changed, table, key, text)
        try:
            is_right = tomllib.loads(new) == values
        except tomllib.TOMLDecodeError:
            is_right = False
        if not is_right:
            reason = f"cannot be written by this command; write {key} = {json.dumps(text)} yourself"
            raise file.error((table, key), reason)
        changed = TomlFile(file.path, new, values)
    return changed


def _with_text(file: TomlFile, table: str, key: str, text: str) -> str:
    lines = file.text.splitlines(keepends=True)
    value = json.dumps(text, ensure_ascii=False)
    if (number := file.line((table, key))) is not None:
        pattern = rf"(\b{key}\s*=\s*){TEXT}"
        lines[number - 1] = re.sub(pattern, lambda m: m[1] + value, lines[number - 1], count=1)
    elif (number := file.line((table,))) is not None:
        lines.insert(number, f"{key} = {value}\n")
    else:
        ended = "" if file.text.endswith("\n") or not file.text else "\n"
        lines.append(f"{ended}\n[{table}]\n{key} = {value}\n")
    return "".join(lines)


def replace_file(file: TomlFile) -> None:
    """Write a file in place of the one at its path, with the same mode; it is then on disk."""
    path = file.path.resolve()  # a link stays a link
    old = path.read_bytes()
    content = file.text.replace("\n", "\r\n") if b"\r\n" in old else file.text
    mark = b"\xef\xbb\xbf" if old.startswith(b"\xef\xbb\xbf") else b""
    mode = stat.S_IMODE(path.stat().st_mode)
    with replacing(path) as part:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with os.fdopen(os.open(part, flags, mode), "wb") as stream:
            os.fchmod(stream.fileno(), mode)
            stream.write(mark + content.encode())
            stream.flush()
            os.fsync(stream.fileno())
