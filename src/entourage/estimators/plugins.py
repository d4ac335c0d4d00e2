"""Names of what is imported only when it is needed.

A model file can hold any of these models, an estimator can fit a blend of models ("auto"), and a model can be written
as an ONNX graph. Some of that lives in rooms that are built upon estimators, so it is known here by name, and only
here.
"""

from importlib import import_module
from typing import Any

__all__ = ["automatic", "can_be_in_a_file", "explorer", "model_class", "model_names", "onnx_export"]

_MODELS = {
    "Ranker": "entourage.estimators.ranker",
    "DiscreteChooser": "entourage.estimators.choosers",
    "SubsetChooser": "entourage.estimators.choosers",
    "MultinomialLogit": "entourage.choice.logit",
    "NestedLogit": "entourage.choice.nested",
    "MixedLogit": "entourage.choice.mixed",
    "ContextualLogit": "entourage.choice.contextual",
    "LinearContextLogit": "entourage.choice.linear_context",
    "LatentClassLogit": "entourage.choice.latent",
    "RandomRegret": "entourage.choice.regret",
    "CrossNestedLogit": "entourage.choice.cross_nested",
    "LinearLogit": "entourage.selection.candidates",
    "RankSVM": "entourage.estimators.baselines",
    "LinearRanker": "entourage.estimators.baselines",
    "LambdaMART": "entourage.estimators.baselines",
    "BoostedLogit": "entourage.estimators.baselines",
    "BoostedSubset": "entourage.estimators.baselines",
    "BestColumn": "entourage.estimators.baselines",
    "BestColumnLogit": "entourage.estimators.baselines",
    "BestColumnSubset": "entourage.estimators.baselines",
}


def model_names() -> list[str]:
    """Return the names of all models that a file can hold."""
    return list(_MODELS)


def model_class(name: str) -> Any:
    """Return a class of `model_names`. Its ``from_file(content, tensors)`` restores a model."""
    return getattr(import_module(_MODELS[name]), name)


def can_be_in_a_file(kind: type) -> bool:
    """Whether a class is one that a file can hold, not one of a user's own."""
    return kind.__name__ in _MODELS and model_class(kind.__name__) is kind


def automatic() -> Any:
    """Return the module that fits a blend: :mod:`entourage.selection.auto`."""
    return import_module("entourage.selection.auto")


def onnx_export() -> Any:
    """Return the package that writes ONNX files: :mod:`entourage.serving.onnx`."""
    return import_module("entourage.serving.onnx")


def explorer() -> Any:
    """Return the package that makes pages in which a model runs: :mod:`entourage.serving.explorer`."""
    return import_module("entourage.serving.explorer")
