"""The whole graph of a model: cells or features, scores, what is made of scores."""

from typing import Any

import torch
from torch import Tensor, nn

from entourage.choice import (
    ContextualLogit,
    LatentClassLogit,
    LinearContextLogit,
    MixedLogit,
    MultinomialLogit,
    NestedLogit,
    RandomRegret,
)
from entourage.data.columns import Column, number_marks
from entourage.data.encoder import TableEncoder
from entourage.estimators.baselines import (
    BestColumn,
    BestColumnLogit,
    BestColumnSubset,
    BoostedLogit,
    BoostedSubset,
    LambdaMART,
    LinearRanker,
    RankSVM,
)
from entourage.estimators.net_estimator import NetEstimator
from entourage.serving.onnx.baselines import ColumnScores, LinearScores, TreeScores
from entourage.serving.onnx.blends import BlendScores
from entourage.serving.onnx.logits import (
    ContextualScores,
    LinearContextScores,
    LogitScores,
    MixtureScores,
    NestedScores,
    RegretScores,
)
from entourage.serving.onnx.nets import NetScores
from entourage.serving.onnx.outcomes import Outcome
from entourage.serving.onnx.refusal import ExportError
from entourage.serving.onnx.scorer import MOST, FeatureScorer, doubles, finite
from entourage.serving.onnx.tables import CodedColumns, PlainFeatures

__all__ = ["ModelGraph", "scorer_of"]

#: The first that fits a model.
_SCORERS: tuple[tuple[tuple[type, ...], Any], ...] = (
    ((LinearRanker, RankSVM), LinearScores),
    ((LambdaMART, BoostedLogit, BoostedSubset), TreeScores),
    ((BestColumn, BestColumnLogit, BestColumnSubset), ColumnScores),
    ((MultinomialLogit,), LogitScores),
    ((NestedLogit,), NestedScores),
    ((ContextualLogit,), ContextualScores),
    ((LinearContextLogit,), LinearContextScores),
    ((RandomRegret,), RegretScores),
    ((LatentClassLogit, MixedLogit), MixtureScores),
)


def scorer_of(model: Any) -> FeatureScorer:
    """Return the module that scores as a fitted model does."""
    if isinstance(model, NetEstimator):
        if model.reading_ is not None:
            raise ExportError(
                "The pretrained net can't be exported: it scores by the labelled sets that it has read, all of which "
                "would have to be in the graph. Fit a net that is trained to these sets, such as "
                f"{type(model).__name__}(FATE()), on the command line --model fate."
            )
        if model.blend_ is not None:
            return BlendScores(model.blend_, model.n_features_in_, scorer_of)
        return NetScores(model)
    for kinds, made in _SCORERS:
        if isinstance(model, kinds):
            found: FeatureScorer = made(model)
            return found
    known = sorted(kind.__name__ for kinds, _ in _SCORERS for kind in kinds)
    raise ExportError(
        f"{type(model).__name__} can't be exported. What can be: Ranker, DiscreteChooser, SubsetChooser, "
        f"{', '.join(known)}."
    )


class ModelGraph(nn.Module):
    """All that a fitted model does with sets, given as padded arrays.

    Attributes
    ----------
    columns, situation_columns : of a table; empty where the model was fitted to arrays
    widths : how many numbers come of an object, and of a situation
    """

    most: Tensor

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.register_buffer("most", doubles(MOST))
        self.scorer = scorer_of(model)
        self.outcome = Outcome(model)
        self.columns: list[Column] = []
        self.situation_columns: list[Column] = []
        self.objects: nn.Module = PlainFeatures()
        self.situation: nn.Module = PlainFeatures()
        self.widths = (model.n_features_in_, model.n_situation_features_in_)
        self.missing: list[str] = []
        if model.table_ is not None:
            encoder = TableEncoder.from_json(model.table_)
            self.columns = [column for column in encoder.columns if column.role == "object"]
            self.situation_columns = [column for column in encoder.columns if column.role == "situation"]
            self.widths = (len(self.columns), len(self.situation_columns))
            self.missing, marks = encoder.missing, number_marks(encoder.missing)
            self.objects = CodedColumns(self.columns, marks)
            if self.situation_columns:
                self.situation = CodedColumns(self.situation_columns, marks)

    def forward(self, objects: Tensor, mask: Tensor, situation: Tensor | None = None) -> tuple[Tensor, ...]:
        """Return the outputs that ``outcome`` names; NaN in sets that the model would refuse.

        Parameters
        ----------
        objects : (n, m, columns), cells or features, in double precision
        mask : (n, m) bool, False in the padding, where objects may be anything
        situation : (n, columns), where there are such
        """
        features, shared, right = self.encoded(objects, mask, situation)
        return self.outputs(self.scorer(features, mask, shared), mask, right)

    def encoded(
        self, objects: Tensor, mask: Tensor, situation: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None, Tensor]:
        """Return features of objects and of the situation, and which sets can be used, (n,)."""
        features, valid = self.objects(torch.where(mask.unsqueeze(-1), objects, 0.0))
        right = (valid.all(-1) | ~mask).all(1)
        shared = None
        if situation is not None:
            shared, valid = self.situation(situation)
            right = right & valid.all(-1)
        return features, shared, right

    def outputs(self, scores: Tensor, mask: Tensor, right: Tensor) -> tuple[Tensor, ...]:
        """Return the outputs, given scores, (n, m), and which sets can be used."""
        right = right & (finite(scores, self.most) | ~mask).all(1)
        return tuple(_with_nan(output, right, mask) for output in self.outcome(scores, mask))


def _with_nan(output: Tensor, right: Tensor, mask: Tensor) -> Tensor:
    """Return an output of sets that are not right as NaN, but for the padding."""
    if output.dtype == torch.bool:
        return output & right.unsqueeze(1)
    if output.ndim == 1:
        return torch.where(right, output, torch.nan)
    return torch.where(right.unsqueeze(1) | ~mask, output, torch.nan)
