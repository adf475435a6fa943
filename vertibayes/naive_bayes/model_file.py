"""Naive Bayes models with numbers as files: BIF and ``model.json`` have states alone.

``naive_bayes.json`` has an object for the class and one for each feature::

    {"format": "vertibayes-naive-bayes", "version": 1,
     "target": {"name": "income", "states": ["<=50K", ">50K"], "counts": [24720.0, 7841.0],
      "probabilities": [0.759, 0.241]},
     "features": [
      {"name": "sex", "states": ["Female", "Male"], "probabilities": [[0.388, 0.612], ...]},
      {"name": "age", "bounds": [17.0, 90.0], "mean": [36.8, 44.2], "variance": [196.6, 110.6]}]}

Each row of ``probabilities`` is the distribution of a feature in one class. A number is normally
distributed in each class, with its mean and variance in the unit of the column. Version 2 also has
``"covariances"``: for each class the matrix of all numbers, in the order of the features.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from vertibayes.naive_bayes.base import Floats, NaiveBayes
from vertibayes_protocols.schema import Schema
from vertibayes_protocols.site.statistics import Numeric
from vertibayes_protocols.variables import Variable

FORMAT, VERSION = "vertibayes-naive-bayes", 1
WITH_COVARIANCES = 2


def write_naive_bayes(model: NaiveBayes) -> str:
    """Return a fitted model as the text of a ``naive_bayes.json``."""
    target = model.schema.target
    about = {
        "format": FORMAT,
        "version": VERSION if model.cov_ is None else WITH_COVARIANCES,
        "target": {
            "name": target.name,
            "states": target.states,
            "counts": model.class_count_.tolist(),
            "probabilities": np.exp(model.class_log_prior_).tolist(),
        },
        "features": [_feature(model, feature) for feature in model.schema.features.values()],
    }
    if model.cov_ is not None:
        about["covariances"] = model.cov_.tolist()
    return json.dumps(about, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _feature(model: NaiveBayes, feature: Variable | Numeric) -> dict[str, Any]:
    name = feature.name
    if isinstance(feature, Variable):
        shares = np.exp(model.feature_log_prob_[name])
        return {"name": name, "states": feature.states, "probabilities": shares.tolist()}
    mean, variance = model.theta_[name].tolist(), model.var_[name].tolist()
    return {
        "name": name,
        "bounds": [feature.low, feature.high],
        "mean": mean,
        "variance": variance,
    }


def is_naive_bayes(path: Path) -> bool:
    """Whether a file is a ``naive_bayes.json``, valid or not."""
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and content.get("format") == FORMAT


def read_naive_bayes(path: Path) -> NaiveBayes:
    """Read a ``naive_bayes.json``; the model predicts, and has no sums to add others to."""
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"))
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError(f'it is another kind of file; expected "format": "{FORMAT}"')
        if content.get("version") not in (VERSION, WITH_COVARIANCES):
            raise ValueError(
                f"its version is {content.get('version')}, expected {VERSION} or {WITH_COVARIANCES}"
            )
        model = _model(content["target"], content["features"])
        if content["version"] == WITH_COVARIANCES:
            model.cov_ = _covariances(content, model)
        return model
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror}") from None
    except KeyError as error:
        raise ValueError(f"{path}: not a valid naive_bayes.json: {error} is missing") from None
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path}: not a valid naive_bayes.json: {error}") from None


def _model(target: Mapping[str, Any], features: list[Mapping[str, Any]]) -> NaiveBayes:
    if len({feature["name"] for feature in features}) < len(features):
        raise ValueError("a feature appears twice")
    variable = Variable(str(target["name"]), _states(target))
    schema = Schema(variable, {feature["name"]: _declared(feature) for feature in features})
    model, classes = NaiveBayes(schema), len(variable.states)
    model.class_count_ = _array(variable.name, target, "counts", (classes,))
    model.class_log_prior_ = _log(_array(variable.name, target, "probabilities", (classes,)))
    model.feature_log_prob_, model.theta_, model.var_ = {}, {}, {}
    for feature in features:
        name, declared = feature["name"], schema.features[feature["name"]]
        if isinstance(declared, Variable):
            shape = classes, len(declared.states)
            model.feature_log_prob_[name] = _log(_array(name, feature, "probabilities", shape))
            continue
        model.theta_[name] = _array(name, feature, "mean", (classes,))
        model.var_[name] = _array(name, feature, "variance", (classes,))
        if not (model.var_[name] > 0).all():
            raise ValueError(f"the variance of {name!r} must be above 0")
    return model


def _covariances(content: Mapping[str, Any], model: NaiveBayes) -> Floats:
    count = len(model.theta_)
    shape = len(model.classes_), count, count
    found = _array("numbers", content, "covariances", shape)
    if not np.array_equal(found, found.swapaxes(1, 2)) or (np.linalg.eigvalsh(found) <= 0).any():
        raise ValueError("the covariances of a class must be symmetric and positive definite")
    return found


def _declared(feature: Mapping[str, Any]) -> Variable | Numeric:
    if "states" in feature:
        return Variable(str(feature["name"]), _states(feature))
    low, high = map(float, feature["bounds"])
    numeric = Numeric(str(feature["name"]), low, high)
    numeric.check()
    return numeric


def _states(about: Mapping[str, Any]) -> tuple[str, ...]:
    states = about["states"]
    if not isinstance(states, list) or not all(isinstance(state, str) for state in states):
        raise TypeError(f"the states of {about['name']!r} must be a list of texts")
    return tuple(states)


def _array(name: str, about: Mapping[str, Any], key: str, shape: tuple[int, ...]) -> Floats:
    array = np.array(about[key], np.float64)
    if array.shape != shape or not np.isfinite(array).all():
        raise ValueError(
            f"the {key} of {name!r} must be finite numbers of the shape {shape}, got {array.shape}"
        )
    return array


def _log(shares: Floats) -> Floats:
    """Return the logarithms of probabilities; minus infinity for 0."""
    if (shares < 0).any() or not np.allclose(shares.sum(axis=-1), 1, atol=1e-6):
        raise ValueError("probabilities must be 0 or more, and add up to 1 in each class")
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(shares))
