"""Read JSON files whose content the caller checks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read_json(path: Path) -> Any:
    """Return the content of a JSON file."""
    try:
        return json.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file") from None
    except RecursionError:
        raise ValueError(f"{path}: nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"{path}, line {error.lineno}: not JSON ({_why(error)})") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path}: not JSON: it is not text in UTF-8") from None
    except (OSError, ValueError) as error:  # as numbers of thousands of digits
        raise ValueError(f"{path}: cannot be read ({error})") from None


def is_names(value: object) -> bool:
    """Whether a value is a list of texts."""
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _why(error: json.JSONDecodeError) -> str:
    """Say what is wrong: two frequent mistakes have names, which do not depend on the Python."""
    if not error.doc.strip():
        return "the file is empty"
    closing = error.doc[error.pos :].lstrip(", \t\r\n")[:1]
    commas = error.doc[error.pos :].startswith(",") or error.doc[: error.pos].rstrip().endswith(",")
    if commas and closing in ("]", "}"):
        return f"remove the comma before the closing {closing}"
    return error.msg
