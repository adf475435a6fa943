"""Ask for known vulnerabilities of the locked packages, if the service answers.

    python -m releasing.audit [LOCK]

The exit status is 1 if a package has a known vulnerability. If the service cannot be reached, or
knows none of the packages (a mirror may serve packages without their vulnerabilities), the command
prints a line that begins with "skipped:" and the exit status is 0.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

UNREACHABLE = ("requests.exceptions.", "ConnectionError", "Could not connect")


def asked(lock: str) -> tuple[str, str]:
    """Return what pip-audit prints about a lock: its report as JSON, and its errors."""
    command = [sys.executable, "-m", "pip_audit", "--disable-pip", "--require-hashes"]
    command += ["--progress-spinner", "off", "--format", "json", "--requirement", lock]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return ran.stdout, ran.stderr


def verdict(report: str, errors: str) -> tuple[str, int]:
    """Return a sentence about pip-audit's report, and the exit status."""
    if not report.strip():
        last = errors.strip().rpartition("\n")[2]
        if any(name in errors for name in UNREACHABLE):
            return f"skipped: the service of vulnerabilities was not reached: {last}", 0
        return f"pip-audit failed: {last}", 2
    packages: list[dict[str, Any]] = json.loads(report)["dependencies"]
    known = [package for package in packages if "skip_reason" not in package]
    if not known:
        return f"skipped: the service knows none of the {len(packages)} packages", 0
    lines = list(vulnerabilities(known))
    audited = f"{len(known)} of {len(packages)} packages audited; vulnerabilities: {len(lines)}"
    return "\n".join([*lines, audited]), int(bool(lines))


def vulnerabilities(packages: Sequence[dict[str, Any]]) -> list[str]:
    """Return a line for each vulnerability: the package, its version, the id and the remedies."""
    return [
        f"{package['name']} {package['version']}: {found['id']}; fixed in "
        f"{', '.join(found['fix_versions']) or 'no release'}"
        for package in packages
        for found in package["vulns"]
    ]


if __name__ == "__main__":
    text, status = verdict(*asked(*(sys.argv[1:] or ["requirements.lock"])))
    print(text)
    sys.exit(status)
