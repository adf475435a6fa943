"""What an alignment has shown to the analyst: how many people are in which lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vertibayes_protocols.alignment import AlignedPeople


def alignment_as_json(people: AlignedPeople) -> dict[str, Any]:
    """Return what an alignment has shown, as JSON data.

    Of a single list the number includes what pads the list to its public size. A study that was
    resumed has kept its alignment: the numbers were shown before.
    """
    lists = [{"sites": list(sites), "people": count} for sites, count in people.regions.items()]
    return {"people": people.people, "kept": people.people is None, "lists": lists}


def report_of_people(alignment: Mapping[str, Any]) -> list[str]:
    """Return the lines that a command prints about the people of a study."""
    if alignment["kept"]:
        return ["the people were aligned in an earlier session of this study"]
    regions = sorted(alignment["lists"], key=lambda each: -len(each["sites"]))
    most = len({site for each in regions for site in each["sites"]})
    shown = [_shown(each["sites"], each["people"], most) for each in regions]
    people = "1 person" if alignment["people"] == 1 else f"{alignment['people']} people"
    return [f"{people} in the study; {', '.join(shown)}", *_shares(alignment["lists"])]


def _shares(lists: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say which share of each list another list has too: the rest may be typing errors."""
    counts: dict[str, list[int]] = {}
    for each in lists:
        for site in each["sites"]:
            of_site = counts.setdefault(site, [0, 0])
            of_site[0] += each["people"] * (len(each["sites"]) > 1)
            of_site[1] += each["people"]
    shares = [
        f"{site} {both / people:.1%}" for site, (both, people) in sorted(counts.items()) if people
    ]
    return [f"also in another list (padding lowers it): {', '.join(shares)}"] if shares else []


def _shown(sites: Sequence[str], people: int, most: int) -> str:
    """Say how many people are in some lists, of `most` in all."""
    if len(sites) == most:
        return f"{people} in all lists"
    padded = " (padding included)" if len(sites) == 1 else ""
    return f"{people} at {' and '.join(sites)} alone{padded}"
