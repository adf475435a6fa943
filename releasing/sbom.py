"""Write a software bill of materials (CycloneDX 1.6) of a lock, and validate it.

    python -m releasing.sbom LOCK FILE

The components are the lock's packages, with the hashes of all their files. The file is the same for
the same lock and release.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from releasing.check import ROOT, release_of

SCHEMA = "1.6"


def described(lock: str) -> dict[str, Any]:
    """Return what cyclonedx-py says of a lock."""
    command = [sys.executable, "-W", "ignore", "-m", "cyclonedx_py", "requirements", lock]
    command += ["--pyproject", str(ROOT / "pyproject.toml"), "--output-reproducible"]
    command += ["--spec-version", SCHEMA, "--of", "JSON", "-o", "-"]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    content: dict[str, Any] = json.loads(ran.stdout)
    return content


def tidied(content: dict[str, Any], release: str) -> dict[str, Any]:
    """Name the release, which pyproject.toml leaves to the code, and drop repeated text."""
    project = content["metadata"]["component"]
    project |= {"version": release, "purl": f"pkg:pypi/{project['name']}@{release}"}
    for component in content["components"]:
        del component["description"]  # the line of the lock; its hashes have fields of their own
    return content


def check(text: str) -> None:
    """Refuse a text that is not valid by the schema of CycloneDX."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    error = JsonStrictValidator(SchemaVersion.from_version(SCHEMA)).validate_str(text)
    if error is not None:
        raise ValueError(f"the bill of materials is not valid: {error}")


def main(lock: str, file: str) -> None:
    """Write the bill of materials of a lock."""
    content = tidied(described(lock), release_of(ROOT))
    text = json.dumps(content, indent=2) + "\n"
    check(text)
    path = Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    print(f"{path}: {len(content['components'])} packages, {len(text) // 1000} kB, valid")


if __name__ == "__main__":
    main(*sys.argv[1:])
