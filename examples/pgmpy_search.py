"""Run pgmpy's own hill climbing over three sites: the cells of a notebook.

The records are scikit-learn's breast cancer data (Wolberg, Street, Mangasarian 1995), in thirds.
pgmpy learns the structure and the CPTs from tables that the sites count together, and answers
questions with the model. The search is compared with the same search over the pooled records.

    python examples/pgmpy_search.py
"""

from __future__ import annotations

# %% Records, whose columns three sites hold
import pandas as pd
from pgmpy.base import DAG
from pgmpy.causal_discovery import ExpertKnowledge, HillClimbSearch
from pgmpy.inference import VariableElimination
from pgmpy.models import DiscreteBayesianNetwork
from pgmpy.parameter_estimator import DiscreteBayesianEstimator
from sklearn.datasets import load_breast_cancer

from vertibayes import SecureCounter, Structure, federate, learn_structure, split_columns
from vertibayes.pgmpy import fit

COLUMNS = ["mean radius", "mean texture", "mean concavity", "worst area", "worst smoothness"]
THIRDS = ["low", "middle", "high"]


def records() -> pd.DataFrame:
    """Return five measurements in thirds, and the diagnosis."""
    cancer = load_breast_cancer(as_frame=True)
    thirds = {name: pd.qcut(cancer.data[name], 3, labels=THIRDS).astype(str) for name in COLUMNS}
    return pd.DataFrame(thirds).assign(diagnosis=cancer.target.map({0: "malignant", 1: "benign"}))


# %% pgmpy's search: the same object takes pooled records (`fit`) or a counter (`vertibayes.pgmpy`)
def search() -> HillClimbSearch:
    """Return pgmpy's hill climbing by BDeu, with what experts know."""
    known = ExpertKnowledge(forbidden_edges=[(name, "diagnosis") for name in COLUMNS])
    return HillClimbSearch(
        "bdeu", expert_knowledge=known, max_indegree=2, return_type="dag", show_progress=False
    )


# %% The structure, the CPTs, and a search of vertibayes that starts from pgmpy's structure
def learn(frame: pd.DataFrame) -> tuple[DAG, DiscreteBayesianNetwork, Structure]:
    """Learn from three sites, and print what they revealed."""
    with federate(split_columns(frame, sites=3)) as federation:
        counter = SecureCounter.of(federation, order=list(frame.columns))
        dag = fit(search(), counter).causal_graph_
        print(f"pgmpy: {sorted(dag.edges)}")
        print(f"{counter.calls} calls revealed {counter.ledger.cells} counts")
        model = DiscreteBayesianNetwork(dag)
        model.add_cpds(*fit(DiscreteBayesianEstimator(), counter, dag).parameters_)
        better = learn_structure(counter, "tabu", start=dag)
        changed = better.hamming_distance(Structure.from_networkx(dag))
        print(f"tabu search by BIC from there, without experts: {changed} other edges")
    return dag, model, better


# %% Questions, which pgmpy answers
def ask(model: DiscreteBayesianNetwork, **evidence: str) -> float:
    """Return the probability that a tumour is malignant."""
    model.check_model()
    answer = VariableElimination(model).query(["diagnosis"], evidence, show_progress=False)
    return float(answer.get_value(diagnosis="malignant"))


# %% The same search over pooled records
def compare() -> tuple[DAG, DAG]:
    """Learn from the sites and from pooled records."""
    frame = records()
    dag, model, _ = learn(frame)
    print(f"P(malignant | largest area) = {ask(model, **{'worst area': 'high'}):.3f}")
    pooled = search().fit(frame).causal_graph_
    print("pooled records:", "the same edges" if set(dag.edges) == set(pooled.edges) else "OTHERS")
    return dag, pooled


if __name__ == "__main__":
    compare()
