"""Two hospitals learn one model from the columns of scikit-learn's breast cancer data.

The data are of 569 patients of Wisconsin (Wolberg, Street and Mangasarian 1995). One hospital has
the diagnosis and the mean measurements of the cell nuclei; the other hospital has the worst
measurements. Each hospital bins its own numbers.

    python examples/two_hospitals.py

The example needs scikit-learn for the data.
"""

from __future__ import annotations

from sklearn.datasets import load_breast_cancer

from vertibayes import Network, SecureCounter, federate, fit_cpts, k2, scores
from vertibayes_protocols.site.data import SiteData
from vertibayes_protocols.site.encoding import Encoding
from vertibayes_protocols.site.text_column import TextColumn


def hospitals() -> dict[str, SiteData]:
    """Return the columns of each hospital, which that hospital has encoded."""
    cancer = load_breast_cancer()
    names = [name.replace(" ", "_") for name in cancer.feature_names]
    columns = {n: TextColumn.of(c) for n, c in zip(names, cancer.data.T, strict=True)}
    diagnosis = TextColumn.of(cancer.target_names[cancer.target])
    quarters = Encoding(bins=0.25)
    city = {"diagnosis": diagnosis} | {n: columns[n] for n in names[:10]}
    county = {n: columns[n] for n in names[20:]}
    return {
        "city": SiteData.from_text("city", city, quarters),
        "county": SiteData.from_text("county", county, quarters),
    }


def learn() -> tuple[Network, SecureCounter]:
    """Learn a model that neither hospital could learn alone."""
    with federate(hospitals()) as federation:
        counter = SecureCounter.of(federation)
        structure = k2(counter, max_parents=2)
        network = fit_cpts(counter, structure, pseudo_count=1)
        print(f"{counter.records} patients, {len(structure.edges)} edges,", end=" ")
        print(f"BIC {scores(counter, structure).bic:.1f} nats")
        across = [
            f"{parent} -> {child}"
            for parent, child in structure.edges
            if counter.study.holders[parent] != counter.study.holders[child]
        ]
        print(f"between the hospitals: {', '.join(across)}")
        print(f"revealed: {len(counter.ledger.tables)} tables, {counter.ledger.cells} cells")
    return network, counter


if __name__ == "__main__":
    learn()
