"""Folders of results without a run: a model, and the summary that the page needs."""

from __future__ import annotations

from vertibayes import __version__
from vertibayes.cli.outputs import described, write_json, write_model
from vertibayes.counting import PlainCounter
from vertibayes.naive_bayes.base import NaiveBayes
from vertibayes.report.page.render import write_report
from vertibayes.report.page.results import Results


def folder_of(model, folder, *, target=None, sites=None, of_edges=None, counts=None):
    """Write a folder of results of a network or a classifier, and return it."""
    folder.mkdir(parents=True)
    is_classifier = isinstance(model, NaiveBayes)
    write_model(folder, model, of_edges or {})
    if counts is not None:
        write_json(folder / "counts.json", counts)
    variables = model.schema.variables if is_classifier else model.variables
    summary = {
        "version": __version__,
        "command": "nb" if is_classifier else "learn",
        "records": 1000,
        "sites": sites or {},
        "variables": described(variables),
        "target": model.schema.target.name if is_classifier else target,
        "edges": len(model.structure.edges),
    }
    write_json(folder / "summary.json", summary)
    return folder


def page_of(*args, **kwargs):
    """Return the address of the page of such a folder."""
    return write_report(folder_of(*args, **kwargs)).as_uri()


def read(*args, **kwargs):
    """Return the results of such a folder."""
    return Results.read(folder_of(*args, **kwargs))


def counts_of(network, data):
    """Return the content of counts.json for records of a network's variables."""
    tables = PlainCounter(data).tables(network.structure.families)
    families = {
        family.child: {
            "parents": list(family.parents),
            "counts": table.reshape(len(table), -1).T.tolist(),
        }
        for family, table in zip(network.structure.families, tables, strict=True)
    }
    return {"format": 1, "kind": "exact", "fewest": None, "families": families}
