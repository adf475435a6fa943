"""The party of a machine: `vertibayes.json` in the folder `local` of its FLARE workspace.

The machine's administrator writes the file; a job can neither change it nor choose another one:

    {"clinic": "/srv/vertibayes/clinic/site.toml"}

It maps the name of the FLARE client, which is also the party's, to the party's file: a `site.toml`,
`dealer.toml` or `study.toml`. With an analyst's, "results to the server": true lets FLARE's server
have the results, so that `download_job` brings them: whoever runs the server can read them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from nvflare.apis.fl_context import FLContext

from vertibayes_protocols.deployment.parts import OWN_FILES
from vertibayes_protocols.deployment.roster.pinning import Own

FILE = "vertibayes.json"
TO_SERVER = "results to the server"

TASK = "vertibayes"
OVER = "vertibayes.over"  # the topic of the message that the study is over
ROLE, STUDY, MINUTES, REPORT, RESULTS = "role", "study", "minutes", "report", "results"
SITE, DEALER, ANALYST = "site", "dealer", "analyst"
FILES = {role: OWN_FILES[role] for role in (SITE, DEALER, ANALYST)}


@dataclass(frozen=True)
class Parties:
    """What `vertibayes.json` of a machine says."""

    files: dict[str, Path]
    sends_results: bool

    @classmethod
    def read(cls, fl_ctx: FLContext) -> Parties:
        """Read the file; ValueError if it is not a mapping of names to absolute paths."""
        path = Path(fl_ctx.get_engine().get_workspace().get_site_config_dir()) / FILE
        if not path.exists():
            return cls({}, False)
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            sends = values.pop(TO_SERVER, False)
            if type(sends) is not bool:
                raise ValueError(f"{TO_SERVER!r} must be true or false, got {sends!r}")
            files = {name: Path(file) for name, file in values.items()}
            if relative := [str(file) for file in files.values() if not file.is_absolute()]:
                raise ValueError(f"{relative[0]!r} is not an absolute path")
        except (ValueError, AttributeError, TypeError) as error:
            expected = "expected the name of the FLARE client with the absolute path of its file"
            raise ValueError(f"{path} is not valid ({error}): {expected}") from None
        return cls(files, sends)

    def file_of(self, name: str, role: str) -> tuple[Path, str]:
        """Return the file of a client, and why it cannot run a role with it: empty if it can."""
        file = self.files.get(name)
        if file is None or file.name != FILES[role]:
            return Path(), f"local/{FILE} of this client names no {FILES[role]} under its name"
        try:
            party = Own.read(file).party
        except (ValueError, OSError):
            return file, f"{file.name} is not valid: run `vertibayes check {file.name}` there"
        if party != name:
            return file, f"{file.name} is of {party}: a party has the name of its FLARE client"
        return file, ""
