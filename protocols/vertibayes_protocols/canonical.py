"""JSON data of which digests are computed, and objects of which every key is checked."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

Kinds: TypeAlias = type | tuple[type, ...]  # of a value of JSON

_JSON = {
    int: "a whole number",
    float: "a number with a point",
    str: "a text",
    list: "a list",
    dict: "an object",
    type(None): "null",
}


def canonical_json(content: Any) -> bytes:
    """Return JSON data in their canonical form, in ASCII: what a digest is computed of."""
    text = json.dumps(
        content, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False
    )
    return text.encode("ascii")


def taken(content: Any, what: str, kinds: Mapping[str, Kinds]) -> dict[str, Any]:
    """Return the values of a JSON object that has these keys and no others."""
    if not isinstance(content, dict):
        raise ValueError(f"a {what} must be a JSON object, got {content!r:.80}")
    if wrong := sorted(set(content) ^ set(kinds)):
        is_ = "unknown" if wrong[0] in content else "missing"
        raise ValueError(f"{wrong[0]!r} of a {what} is {is_}; expected are {', '.join(kinds)}")
    for name, kind in kinds.items():
        allowed = kind if isinstance(kind, tuple) else (kind,)
        if type(content[name]) not in allowed:  # a bool is no int here
            expected = " or ".join(_JSON[one] for one in allowed)
            raise ValueError(f"{name!r} of a {what} must be {expected}, got {content[name]!r:.80}")
    return dict(content)
