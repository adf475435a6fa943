"""Who is in a study of naive Bayes whose sites hold columns: the people whom all sites hold."""

from __future__ import annotations

from dataclasses import replace

from vertibayes_protocols.alignment import AlignedPeople
from vertibayes_protocols.contract import Contract
from vertibayes_protocols.deployment.files import StudyFile
from vertibayes_protocols.opening import align_people, new_study
from vertibayes_protocols.session import Session


def of_common_people(file: StudyFile) -> StudyFile:
    """Return a study of the people whom all sites hold, if it has an alignment."""
    asked = file.alignment
    if asked is None:
        return file
    if asked.level != 1:
        reason = "vdpnb needs level 1: each site counts and scores the people of the study itself"
        raise file.source.error(("alignment", "level"), reason)
    if asked.everyone is not None and set(asked.everyone) != set(file.sites):
        reason = f"vdpnb is of people whom all sites hold: remove it, or name {list(file.sites)}"
        raise file.source.error(("alignment", "everyone"), reason)
    if asked.apart:
        reason = "vdpnb is of people whom all sites hold: remove it"
        raise file.source.error(("alignment", "apart"), reason)
    return replace(file, alignment=replace(asked, everyone=file.sites, apart=()))


def aligned(file: StudyFile, contract: Contract | None, session: Session) -> AlignedPeople | None:
    """Align the sites' lists, if the study has an alignment; a release with noise follows."""
    asked = file.alignment if contract is None else contract.alignment
    if asked is None:
        return None
    parties = session, file.sites, file.dealer
    people = align_people(*parties, new_study(), asked, variables=())  # all sites have the class
    assert people.people is not None  # nobody has kept the alignment of a new study
    if people.people < (declared := sum(file.class_counts.values())):
        reason = (
            f"{declared} people together, and {people.people} are in the study: declare how many "
            "of the people whom all sites hold have each class"
        )
        raise file.source.error(("class_counts",), reason)
    return people
