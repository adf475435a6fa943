"""A site's data, read and encoded as its `site.toml` describes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from protocols.deployment.files import SiteFile
from protocols.errors import DataError
from protocols.site.alignment import check_ids
from protocols.site.data import SiteData
from protocols.site.encoding import Encoding
from protocols.site.findings import Advice
from protocols.site.identifiers import Identifiers, combined
from protocols.site.text import TextColumn, read_columns

ADVICE = Advice(
    exclude="removing {names} from [variables]",
    categorical="{names} = { categorical = true }",
    ignore_case="{names} = { ignore_case = true }",
    more_states="max_states = {count}",
    cut="COLUMN = { cut = [...] }",
    edges="cut",
    bounds="bounds",
    identifies="id_column = {names}",
    missing="missing_codes = [{code}]",
    for_shell=False,
)


def read_data(site: SiteFile) -> SiteData:
    """Read a site's records, of the variables that it offers, in the order of their identifiers.

    Variables that cannot be used are left out, unless the file has ``strict = true``; the report of
    the data lists them.

    Raises
    ------
    DataError
        If the file cannot be read, has no column of a variable, or one cannot be encoded.
    """
    source = site.data
    columns = read_columns(source.file, keep_spaces=source.keep_spaces)
    for name in source.id_column:
        if name not in columns:
            raise DataError(f"{source.file}: no column {name!r} (id_column)")
    unknown = [name for name in site.variables if name not in columns]
    if unknown:
        there = f"no column {', '.join(unknown)} ([variables]); there are {', '.join(columns)}"
        raise DataError(f"{source.file}: {there}")
    parts = {name: columns[name] for name in source.id_column}
    ids = combined([*parts.values()])
    identifiers = _identifiers(site, parts, ids)
    offered = {name: columns[name] for name in site.variables}
    data = SiteData.from_text(str(source.file), offered, _encoding(site), ids, strict=source.strict)
    for variable in data.variables.values():
        try:
            variable.check_printable()
        except ValueError as error:
            raise DataError(f"{source.file}: {error}") from None
    data = replace(data, identifiers=identifiers)
    return data.in_order_of_ids()  # after encoding: its errors name the file's lines


def _identifiers(
    site: SiteFile, parts: Mapping[str, TextColumn], ids: TextColumn
) -> Identifiers | None:
    """Check the identifiers, in their normal form if the site matches its list with others."""
    source, matching = site.data, site.matching
    if matching is None:
        check_ids(str(source.file), f"id_column {' and '.join(map(repr, parts))}", ids)
        return None
    missing, drop = source.missing_codes, matching.drop
    return Identifiers.of(str(source.file), parts, matching.rules, missing=missing, drop=drop)


def _encoding(site: SiteFile) -> Encoding:
    specs, source = site.variables, site.data
    return Encoding(
        missing_codes=source.missing_codes,
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
    )
