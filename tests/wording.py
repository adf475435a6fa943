"""Find habits of wording that make a text hard to read, and say what to write instead.

    python tests/wording.py [PATH ...]

The checker reads Markdown pages without their code, and templates of plain text. Of Python files it
reads the comments, the docstrings and the string literals of several words. Without a path it reads
the whole project.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PLACES = {
    "md": ["*.md", "*/README.md", "docs/**/*.md", "examples/**/*.md", "benchmarks/**/*.md"],
    "vertibayes_mpc": ["mpc/vertibayes_mpc/**/*.py"],
    "vertibayes_protocols": ["protocols/vertibayes_protocols/**/*.py"],
    "vertibayes": ["vertibayes/**/*.py", "vertibayes/**/*.txt.j2"],
    "examples": ["examples/**/*.py"],
    "releasing": ["releasing/**/*.py"],
}

UNIT = r"(?:(?<!['’])s|ms|us|seconds|bytes|[KM]i?B|(?:a|one|\d+) (?:call|message|round|row)s?)"
THING = r"(?:party|site|record|table|row|column|packet|round|query|count|parent|family|peer|batch)"
INLINE_CODE = r"``[^`]+``|`[^`]+`"
# A regular expression, in which a blank stands for any white space, and what to write instead.
HABITS = {
    r"(?:is|are|was|were) wanted": "must be, is expected",
    r"lacking": "missing",
    r"(?:is|are) (?-i:none)": "is not a valid ..., not found",
    r"(?<!here\s)is no (?!longer|more|less|fewer|later|larger|better|worse)": "is not a",
    r"anew": "again, new",
    r"(?:go|goes|going|went|gone) on with": "resumed, continues with",
    r"stands? twice": "appears twice",
    r"but for": "except",
    r"come yet": "connected yet",
    r"told": "notified, informed; message; distinguished",
    r"tells? apart": "distinguishes",
    r"(?:is|are) to be": "must be, will be",
    r"wants": "needs, expects",
    r"till": "until",
    r"opened (?:table|cell)s?": "revealed",
    r"(?:table|cell)s? (?:that )?(?:is|are|was|were) opened": "revealed",
    r"opens (?:\w+ )?(?:table|cell)s?": "reveals",
    r"miners?": "aggregator",
    r"(?<!hill[-\s])climb(?:s|ed|ing)?": "EM",
    r"gaps(?! :)": "missing values",
    r"the gone": "the parties that dropped out",
    r"mend(?:s|ed|ing)?": "fix, correct",
    r"of both(?= ?[.,;:)])": "of both sites (say the noun again)",
    r"(?:its|their) own(?= ?[.,;:)])": "its own column (say the noun again)",
    rf"{UNIT} an? {THING}": "per",
    r"adds up, ": "keeps the total",
    r"what is (?:not )?explained": "the predicted time",
    r"(?-i:Else),": "Otherwise,",
}
# Pages for users say what is so today, and not how the work went.
HISTORY = {
    r"aim(?:s|ed at)?": "leave it out",
    r"sketch(?:es)?": "leave it out",
    r"at the time of writing": "leave it out",
}


class Finding(NamedTuple):
    """A habit of wording, where it is, and the plain form."""

    path: Path
    line: int
    words: str
    plain: str

    def __str__(self) -> str:
        path = self.path.relative_to(ROOT) if self.path.is_relative_to(ROOT) else self.path
        return f"{path}:{self.line}: {self.words!r}; write: {self.plain}"


def findings(path: Path) -> list[Finding]:
    """Return the habits in one file, in the order of its lines."""
    text = path.read_text(encoding="utf-8")
    page = path.suffix != ".py"
    return sorted(
        Finding(path, start + line, words, plain)
        for start, passage in (markdown(text) if page else python(text))
        for line, words, plain in habits(passage, HABITS | HISTORY if page else HABITS)
    )


def habits(passage: str, table: Mapping[str, str]) -> Iterator[tuple[int, str, str]]:
    """Yield the line, the words and the plain form of each habit in a passage."""
    passage = re.sub(INLINE_CODE, blank, passage)
    for habit, plain in table.items():
        pattern = rf"\b(?:{habit})(?!\w)".replace(" ", r"\s+")
        for match in re.finditer(pattern, passage, re.IGNORECASE):
            yield passage.count("\n", 0, match.start()), " ".join(match.group().split()), plain


def markdown(text: str) -> Iterator[tuple[int, str]]:
    """Yield a page without its fenced code, link targets and released history."""
    current = re.split(r"^## \d(?!.*unreleased)", text, maxsplit=1, flags=re.MULTILINE)[0]
    for code in (r"^```.*?^```", r"\]\([^)]*\)"):
        current = re.sub(code, blank, current, flags=re.DOTALL | re.MULTILINE)
    yield 1, current


def blank(match: re.Match[str]) -> str:
    """Replace code by something that no habit matches, and keep its lines."""
    return "…" + "\n" * match.group().count("\n")


def python(text: str) -> Iterator[tuple[int, str]]:
    """Yield the comments of a module, and its docstrings and string literals of several words."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield node.lineno, node.value
    start, lines = 0, list[str]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] != start + len(lines):
                yield start, "\n".join(lines)
                start, lines = token.start[0], []
            lines.append(token.string.lstrip("# "))
    yield start, "\n".join(lines)


def files(place: str) -> list[Path]:
    """Return the files of one place of the project."""
    return sorted({path for pattern in PLACES[place] for path in ROOT.glob(pattern)})


if __name__ == "__main__":
    named = [Path(argument).resolve() for argument in sys.argv[1:]]
    inside = [p for path in named for p in (path.rglob("*") if path.is_dir() else [path])]
    checked = inside if named else [path for place in PLACES for path in files(place)]
    read = [
        path for path in checked if path.suffix in {".md", ".py"} or path.name.endswith(".txt.j2")
    ]
    sys.exit("\n".join(str(finding) for path in read for finding in findings(path)) or 0)
