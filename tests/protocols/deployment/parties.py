"""Folders of parties with files, keys and data, as `vertibayes init --practice` leaves them."""

from __future__ import annotations

import csv
import re

import numpy as np

from vertibayes_protocols.deployment.data import read_data
from vertibayes_protocols.deployment.files import SiteFile
from vertibayes_protocols.deployment.templates import Names, init
from vertibayes_protocols.site.data import SiteData

SITES = ("north", "south", "east")
COLUMNS = {"north": ("age", "sex"), "south": ("pulse", "drug"), "east": ("outcome",)}
RECORDS = 300


def records(records=RECORDS, seed=3):
    """Draw records in which things hang together, and the people's identifiers."""
    draw = np.random.default_rng(seed)
    age, sex = draw.integers(18, 90, records), draw.integers(0, 2, records)
    pulse = np.where(age > 50, draw.integers(0, 3, records), draw.integers(0, 2, records))
    drug = (pulse + draw.integers(0, 2, records)) % 3
    outcome = (drug + sex + (draw.random(records) < 0.2)) % 2
    texts = {
        "age": age.astype(str),
        "sex": np.array(["f", "m"])[sex],
        "pulse": np.array(["low", "mid", "high"])[pulse],
        "drug": np.array(["none", "acme", "zeta"])[drug],
        "outcome": np.array(["well", "ill"])[outcome],
    }
    return [f"patient-{place:05}" for place in draw.permutation(records)], texts


def write_csv(path, ids, texts, names):
    """Write a site's records, in an order of its own."""
    order = np.random.default_rng(len(str(path))).permutation(len(ids))
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", *names])
        writer.writerows([ids[at], *(texts[name][at] for name in names)] for at in order)


def deployment(folder, *, people=None, address=None, free=True, analysts=("analyst",), **options):
    """Write all parties' folders; `people` may leave a site other identifiers.

    free: whether the sites answer any query, and the study asks for exact tables.
    """
    ids, texts = records()
    init(
        folder,
        Names(SITES, analysts=analysts),
        practice=True,
        variables=COLUMNS,
        relay_address=address,
        **options,
    )
    for site in SITES:
        own = (people or {}).get(site, ids)
        write_csv(folder / site / "records.csv", own, texts, COLUMNS[site])
        if free:
            change(folder / site / "site.toml", "# free_tables = false", "free_tables = true")
    for analyst in analysts:
        study = folder / analyst / "study.toml"
        if free:
            without_release(study)
        else:
            change(study, '# algorithm = "hybrid"', 'algorithm = "k2"')  # few choices: quick
    change(folder / "north" / "site.toml", '"age" = {}', "age = { cut = [30, 50, 70] }")
    return folder


def count_by(folder, way, study="analyst/study.toml"):
    """Let a study count by a way that all sites allow."""
    change(folder / study, '# count_by = "masked-tables"', f'count_by = "{way}"')
    for site in SITES:
        allowed = f'count_by = ["masked-tables", "{way}"]'
        change(folder / site / "site.toml", '# count_by = ["masked-tables"]  ', allowed)


def pooled(folder):
    """Return all sites' data as one: what nobody has."""
    found = [read_data(SiteFile.read(folder / site / "site.toml")) for site in SITES]
    variables = {name: v for data in found for name, v in data.variables.items()}
    return SiteData(variables, {name: c for data in found for name, c in data.codes.items()})


def without_release(path):
    """Have a study ask for exact tables of all variables that the sites offer."""
    text = path.read_text()
    text = text[: text.index("[release]")] + text[text.index("# Without [release]") :]
    text, number = re.subn(r"(?m)^variables = .*$", '# variables = ["a", "b"] ', text)
    assert number == 1
    path.write_text(text)


def change(path, old, new):
    """Change a file that has a text once."""
    text = path.read_text()
    assert text.count(old) == 1, (path, old)
    path.write_text(text.replace(old, new))


def changed_key(path, name, key):
    """Pin another public key of a party."""
    text = path.read_text()
    found = re.subn(rf'(?m)^({name} = |name = "{name}"\npublic_key = ).*$', rf'\1"{key}"', text)
    assert found[1] == 1
    path.write_text(found[0])


def without_relay(path):
    """Leave out the table [relay] of a party's file: a job of FLARE carries its packets."""
    text = path.read_text()
    start = text.index("[relay]")
    end = text.find("\n[", start)
    path.write_text(text[:start] + (text[end:] if end > 0 else ""))
