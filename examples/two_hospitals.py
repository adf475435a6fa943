"""Two hospitals, one model: scikit-learn's breast cancer data, its columns split in two.

569 patients of Wisconsin (Wolberg, Street and Mangasarian 1995). One hospital has measured the mean
cell nuclei and knows the diagnosis; the other has the worst ones. Each bins its numbers itself.

    python examples/two_hospitals.py

It needs scikit-learn for the data.
"""

from __future__ import annotations

from sklearn.datasets import load_breast_cancer

from protocols.site.data import SiteData
from protocols.site.encoding import Encoding
from protocols.site.text import TextColumn
from vertibayes import Network, SecureCounter, federate, fit_cpts, k2, scores


def hospitals() -> dict[str, SiteData]:
    """Return what each hospital holds, encoded there."""
    found = load_breast_cancer()
    names = [name.replace(" ", "_") for name in found.feature_names]
    columns = {n: TextColumn.of(c) for n, c in zip(names, found.data.T, strict=True)}
    diagnosis = TextColumn.of(found.target_names[found.target])
    quarters = Encoding(bins=0.25)
    city = {"diagnosis": diagnosis} | {n: columns[n] for n in names[:10]}
    county = {n: columns[n] for n in names[20:]}
    return {
        "city": SiteData.from_text("city", city, quarters),
        "county": SiteData.from_text("county", county, quarters),
    }


def learn() -> tuple[Network, SecureCounter]:
    """Learn the model that neither could learn alone."""
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
        print(f"opened: {len(counter.ledger.tables)} tables, {counter.ledger.cells} cells")
    return network, counter


if __name__ == "__main__":
    learn()
