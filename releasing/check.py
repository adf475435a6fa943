"""Say what keeps a commit from being a release.

    python -m releasing.check

The release is `vertibayes_protocols.RELEASE`, and the commit has the tag "v" with this release.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FINAL = re.compile(r"\d+\.\d+\.\d+")
VERSIONED = "protocols/vertibayes_protocols/__init__.py"
INTEGRATIONS = ("nvflare", "vantage6")


def release_of(root: Path) -> str:
    """Return the release that the code names, read from the text of the package."""
    tree = ast.parse((root / VERSIONED).read_text())
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "RELEASE":
            return str(ast.literal_eval(node.value))
    raise ValueError(f"{VERSIONED} assigns no RELEASE")


def git(root: Path, *arguments: str) -> str:
    """Return what a command of git prints about the repository of a folder, also inside a hook."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, check=True, env=environment
    ).stdout


def other_versions(root: Path, release: str) -> Iterator[str]:
    """Yield the integrations that belong to another release, or refuse this one."""
    base = release.partition(".dev")[0]
    major, minor, _ = map(int, base.split("."))
    for name in INTEGRATIONS:
        path = f"integrations/{name}/pyproject.toml"
        project = tomllib.loads((root / path).read_text())["project"]
        needs = f"vertibayes>={base}.dev0,<{major}.{minor + 1}"
        if project["version"] != base:
            yield f"{path} has the version {project['version']}; expected {base}"
        if needs not in project["dependencies"]:
            yield f"{path} does not depend on {needs!r}"


def complaints(root: Path) -> Iterator[str]:
    """Yield what keeps the commit from being a release."""
    release = release_of(root)
    if not FINAL.fullmatch(release):
        yield f"RELEASE is {release}; a release has three numbers"
    tags = git(root, "tag", "--points-at", "HEAD").split()
    if f"v{release}" not in tags:
        yield f"the commit has the tags {tags}; expected v{release}"
    if git(root, "status", "--porcelain"):
        yield "files differ from the commit: commit or remove them"
    heading = rf"^## \[?{re.escape(release)}\]? - \d{{4}}-\d\d-\d\d$"
    if not re.search(heading, (root / "CHANGELOG.md").read_text(), re.MULTILINE):
        yield f"CHANGELOG.md has no section {release} with a date"
    yield from other_versions(root, release)


if __name__ == "__main__":
    sys.exit("\n".join(complaints(ROOT)) or 0)
