"""`ro-crate-metadata.json`: a release as an RO-Crate 1.2, with what the Five Safes are about.

The entities are those of the Five Safes RO-Crate profile 0.4, as far as a run knows them: the
study, its sites and analyst, the run with its software, inputs and results, the approvals, and the
disclosure check, which is pending. The crate does not declare that it conforms to the profile: it
has no Workflow RO-Crate, and a run does not know a person's affiliation, project and permit. Two
crates of one release differ in dates, and in the digest of results.json, which has dates too.

References
----------
https://w3id.org/5s-crate/0.4, https://w3id.org/ro/crate/1.2, https://w3id.org/shp
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

from vertibayes import __version__
from vertibayes.report.release.assessment import Assessment
from vertibayes_protocols.ledger import Ledger
from vertibayes_protocols.roles import Party

Entity: TypeAlias = dict[str, Any]

NAME = "ro-crate-metadata.json"
VERSION = "https://w3id.org/ro/crate/1.2"
PROFILE = "https://w3id.org/5s-crate/0.4"
FORMATS = {"csv": "text/csv", "json": "application/json", "txt": "text/plain"}
CONDITIONS = (
    "No licence is granted. The approvals of the sites, and the person who checks the release, "
    "decide who may have it."
)


def crate(
    assessment: Assessment,
    files: Mapping[str, bytes],
    about: Mapping[str, str],
    ledger: Ledger,
    sites: Sequence[Party] = (),
    contract: str = "",
) -> Mapping[str, Any]:
    """Return the content of ro-crate-metadata.json, which describes the other files of a release.

    `about` is what each kind of file has; without the `contract` that sites have approved, it was a
    run in one process.
    """
    now = datetime.now(UTC).isoformat(timespec="seconds")
    parts = [_file(name, content, about) for name, content in files.items()]
    organizations = [_entity(f"#site-{at}", "Organization", s) for at, s in enumerate(sites)]
    analyst = next((table.to for table in ledger.tables), "analyst")
    study = f"Study {contract}" if contract else "A run in one process"
    signed = [_sign_off(each, contract) for each in organizations] if contract else []
    run = _learning(parts, contract) | {"endTime": now}
    counts = assessment.sentences()[0]
    check = _action("#disclosure", "DisclosureCheck", f"Disclosure check: pending. {counts}")
    check["actionStatus"] = _status("Potential")
    root = _entity("./", "Dataset", f"What vertibayes {__version__} released") | {
        "description": f"{study}. {counts} The entities are those of {PROFILE}; the crate does not "
        "declare this profile, which needs a Workflow RO-Crate.",
        "datePublished": now,
        "license": {"@id": "#conditions"},
        "hasPart": _all(parts),
        "mentions": _all([run, *signed, check]),
        "sourceOrganization": {"@id": "#study"},
    }
    graph = [
        _entity(NAME, "CreativeWork", "Metadata of this crate")
        | {"about": {"@id": "./"}, "conformsTo": {"@id": VERSION}},
        *(root, *parts, run, *signed, check),
        _entity("#study", "Project", study) | {"member": _all(organizations)},
        *organizations,
        _entity("#analyst", "Person", analyst) | {"memberOf": {"@id": "#study"}},
        # Not a SoftwareApplication: RO-Crate demands its address, and the project has none.
        _entity("#software", "CreativeWork", "vertibayes") | {"version": __version__},
        _entity("#conditions", "CreativeWork", "Conditions of access")
        | {"description": CONDITIONS},
    ]
    if contract:
        digest = _entity("#contract", "PropertyValue", "digest of the approved study")
        graph.append(digest | {"value": contract})
    return {"@context": f"{VERSION}/context", "@graph": graph}


def _entity(place: str, kind: str, name: str) -> Entity:
    return {"@id": place, "@type": kind, "name": name}


def _to(entity: Entity) -> Entity:
    return {"@id": entity["@id"]}


def _all(entities: Iterable[Entity]) -> list[Entity]:
    return list(map(_to, entities))


def _file(name: str, content: bytes, about: Mapping[str, str]) -> Entity:
    return _entity(name, "File", name) | {
        "description": about[re.sub(r"_\d+_", "_N_", name)],
        "encodingFormat": FORMATS[name.rpartition(".")[2]],
        "contentSize": str(len(content)),
        "sha256": hashlib.sha256(content).hexdigest(),
    }


def _learning(parts: Sequence[Entity], contract: str) -> Entity:
    """Return what was done: the learning from the released tables, as approved."""
    limits, approved = {"@id": "config.json"}, {"@id": "#contract"}
    action = _entity("#run", "CreateAction", "Learning of a Bayesian network from released tables")
    return action | {
        "agent": {"@id": "#analyst"},
        "instrument": {"@id": "#software"},
        "object": [approved, limits] if contract else limits,
        "result": [_to(part) for part in parts if part["@id"].startswith("output_")],
        "actionStatus": _status("Completed"),
    }


def _action(place: str, kind: str, name: str) -> Entity:
    """Return an assessment of the release, of a kind that https://w3id.org/shp names."""
    term = {"additionalType": {"@id": f"https://w3id.org/shp#{kind}"}, "object": {"@id": "./"}}
    return _entity(place, "AssessAction", name) | term


def _sign_off(site: Entity, contract: str) -> Entity:
    name = f"Sign-off: {site['name']} has answered study {contract}, which a site does if its "
    place = site["@id"].replace("#site", "#sign-off")
    done = {"agent": _to(site), "actionStatus": _status("Completed")}
    action = _action(place, "SignOff", f"{name}owner has approved it") | done
    return action | {"object": [{"@id": "./"}, {"@id": "#contract"}, {"@id": "#study"}]}


def _status(status: str) -> str:
    return f"http://schema.org/{status}ActionStatus"
