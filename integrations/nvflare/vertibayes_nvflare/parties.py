"""The parties of a machine: `vertibayes.json` in the folder `local` of its FLARE workspace.

The file maps names to the files of parties, and the machine's administrator writes it:

    {"clinic": "/srv/vertibayes/clinic/site.toml"}

A client runs the party under its own FLARE name, and the server the one under the name "relay". A
job cannot change the file or choose another one.
"""

from __future__ import annotations

import json
from pathlib import Path

from nvflare.apis.fl_context import FLContext

FILE = "vertibayes.json"
RELAY = "relay"

SITE_TASK, DEALER_TASK = "vertibayes_site", "vertibayes_dealer"
STUDY, MINUTES, REPORT = "study", "minutes", "report"  # what tasks and replies have


def party_file(fl_ctx: FLContext, name: str) -> Path | None:
    """Return the file of a party of this machine; None if the machine has no party of this name.

    Raises
    ------
    ValueError
        If `vertibayes.json` is not a mapping of names to absolute paths.
    """
    path = Path(fl_ctx.get_engine().get_workspace().get_site_config_dir()) / FILE
    if not path.exists():
        return None
    try:
        parties = json.loads(path.read_text(encoding="utf-8"))
        file = parties.get(name)
        if file is None:
            return None
        if not Path(file).is_absolute():
            raise ValueError(f"{file!r} is not an absolute path")
    except (ValueError, AttributeError, TypeError) as error:
        expected = "expected are names of FLARE clients with the absolute paths of their files"
        raise ValueError(f"{path} is not valid ({error}): {expected}") from None
    return Path(file)
