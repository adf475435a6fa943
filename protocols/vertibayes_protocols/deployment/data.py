"""A site's data, read and encoded as its `site.toml` describes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from vertibayes_protocols.deployment.files import SiteFile
from vertibayes_protocols.errors import DataError
from vertibayes_protocols.site.aggregation import SAME, Aggregation
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.findings import Advice
from vertibayes_protocols.site.identifiers import (
    Identifiers,
    check_ids,
    check_known,
    combined,
    unified,
)
from vertibayes_protocols.site.sources.reading import read_table
from vertibayes_protocols.site.text_column import TextColumn
from vertibayes_protocols.storage.memory import SiteMemory

ADVICE = Advice(
    exclude="removing {names} from [variables]",
    categorical="{name} = { categorical = true }",
    ignore_case="{name} = { ignore_case = true }",
    more_states="max_states = {count}",
    cut="{name} = { cut = [...] }",
    edges="cut",
    bounds="bounds",
    identifies="id_column = {name}",
    missing="missing_codes = [{code}]",
    keep_na="keep_na = true",
    rare='{name} = { states = [...] } keeps those it lists, rare_states = "keep" in [data] all',
    declared="remove it from [variables]; if it matches records, id_column = {name}",
    for_shell=False,
)


SEVERAL = (
    'if a person has several rows, say how they become one record: aggregate = "last", with '
    "order_by; or min, max, count, same (docs/sources.md)"
)

DROP = 'correct one of them, or set duplicates = "drop" in [alignment], which leaves out both'


def read_data(site: SiteFile) -> SiteData:
    """Read a site's records, of the variables that it offers, in the order of their identifiers.

    Columns of earlier studies keep the states and bins that the site's memory has.

    Variables that cannot be used are left out, unless the file has ``strict = true``; the report of
    the data lists them.
    """
    source, title = site.data, site.data.title
    columns = read_table(
        source.place,
        keep_spaces=source.keep_spaces,
        choose=lambda names: _chosen(site, names),
        keys=source.keys,
        dialect=source.dialect,
    )
    parts = {name: columns[name] for name in source.id_column}
    rules = {name: spec.aggregate or source.aggregate for name, spec in site.variables.items()}
    if any(rules.values()) and (matching := site.matching) is not None:
        # An alignment matches identifiers that are alike in all rows of a person.
        ruled, missing = zip(parts.items(), matching.rules, strict=True), source.missing_codes
        parts = {name: unified(column, rule, missing) for (name, column), rule in ruled}
    ids, encoding = combined([*parts.values()]), _encoding(site)
    if site.memory.exists():
        encoding = replace(encoding, earlier=SiteMemory.read(site.memory).states)
    offered = {name: columns[name] for name in site.variables}
    if any(rules.values()):
        check_known(title, _named(parts), ids)
        firsts = np.unique(ids.places, return_index=True)[1]  # a person's first row
        parts = {name: column.take(firsts) for name, column in parts.items()}
        aggregation = Aggregation({n: r or SAME for n, r in rules.items()}, source.order_by)
        order = columns.get(source.order_by or "")
        ids, offered = aggregation.people(title, ids, offered, encoding, order)
        title = f"{title}, one record a person"
    identifiers = _identifiers(site, parts, ids)
    data = SiteData.from_text(title, offered, encoding, ids, strict=source.strict)
    data = replace(data, identifiers=identifiers)
    del columns, offered, parts  # as large as the codes, which the order copies
    return data.in_order_of_ids()  # after encoding: its errors name the file's lines


def identifier_of(site: SiteFile, data: SiteData, parts: Sequence[str]) -> str:
    """Return an identifier as the data have it, given its value in each column of `id_column`."""
    columns = site.data.id_column
    if len(parts) != len(columns):
        names, given = ", ".join(columns), len(parts)
        raise ValueError(
            f"an identifier has one value per column of id_column ({names}): {given} given; "
            "repeat --record for each column, in this order"
        )
    own = parts if site.data.keep_spaces else [part.strip() for part in parts]
    place = None if data.identifiers is None else data.identifiers.record_of(own)
    if place is not None and data.ids is not None:
        return str(data.ids.texts[data.ids.places[place]])
    return str(combined([TextColumn.of([part]) for part in own]).texts[0])


def _named(parts: Mapping[str, TextColumn]) -> str:
    return f"id_column {' and '.join(map(repr, parts))}"


def _identifiers(
    site: SiteFile, parts: Mapping[str, TextColumn], ids: TextColumn
) -> Identifiers | None:
    """Check the identifiers, in their normal form if the site matches its list with others."""
    source, matching = site.data, site.matching
    if matching is None:
        check_ids(source.title, _named(parts), ids, SEVERAL)
        return None
    missing, drop = source.missing_codes, matching.duplicates == "drop"
    return Identifiers.of(
        source.title, parts, matching.rules, missing=missing, drop=drop, remedy=f"{DROP}; {SEVERAL}"
    )


def _chosen(site: SiteFile, names: Sequence[str]) -> list[str]:
    """Return the columns to read, of those that the table has."""
    source = site.data
    for name in source.id_column:
        if name not in names:
            raise DataError(f"{source.title}: no column {name!r} (id_column)")
    unknown = [name for name in site.variables if name not in names]
    if unknown:
        there = f"no column {', '.join(unknown)} ([variables]); there are {', '.join(names)}"
        raise DataError(f"{source.title}: {there}")
    if source.order_by is not None and source.order_by not in names:
        raise DataError(f"{source.title}: no column {source.order_by!r} (order_by)")
    more = [source.order_by] if source.order_by is not None else []
    return list(dict.fromkeys([*source.id_column, *site.variables, *more]))


def _encoding(site: SiteFile) -> Encoding:
    specs, source = site.variables, site.data
    keeps = site.policy.free_tables or source.rare_states == "keep"
    return Encoding(
        missing_codes=source.missing_codes,
        keep_na=source.keep_na,
        states={name: spec.states for name, spec in specs.items() if spec.states},
        categorical=[name for name, spec in specs.items() if spec.categorical],
        bins=source.bins,
        max_states=source.max_states,
        cuts={name: spec.cut for name, spec in specs.items() if spec.cut},
        binning=source.binning,
        ignore_case=[name for name, spec in specs.items() if spec.ignore_case],
        own_bins={name: spec.bins for name, spec in specs.items() if spec.bins is not None},
        advice=ADVICE,
        bounds={name: spec.bounds for name, spec in specs.items() if spec.bounds is not None},
        fewest=1 if keeps else site.policy.fewest_records,
    )
