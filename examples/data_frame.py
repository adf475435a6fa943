"""Learn a model from a pandas data frame in three lines, predict with it, and save it.

Two sites hold columns of scikit-learn's iris data (Fisher 1936). In a notebook, a last line
``network`` draws the structure.

    python examples/data_frame.py

The example needs scikit-learn for the data.
"""

from __future__ import annotations

from pathlib import Path

from sklearn.datasets import load_iris

from vertibayes import Network, SecureCounter, federate, fit_cpts, k2, split_columns


def learn(path: Path | None = None) -> Network:
    """Learn a network that predicts the species, and save it if a path is given."""
    iris = load_iris(as_frame=True)
    frame = iris.data.assign(species=iris.target_names[iris.target])

    with federate(split_columns(frame, sites=2)) as federation:
        counter = SecureCounter.of(federation, order=["species", *iris.feature_names])
        network = fit_cpts(counter, k2(counter, max_parents=2), pseudo_count=1)

    predicted = network.predict(frame, "species")
    print(
        f"{(predicted == frame.species).mean():.0%} of the {len(frame)} species it was learned from"
    )
    print(network.predict_proba(frame.iloc[[0, 50, 100]], "species").round(3))
    if path is not None:
        network.save(path)  # vertibayes.read_model and vertibayes predict --model read the file
    return network


if __name__ == "__main__":
    learn()
