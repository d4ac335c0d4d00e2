"""Classical, context-free models of rankings and choices, and the registry of all rankers by their table names."""

from collections.abc import Callable
from typing import Any

from entourage.estimators.base import SetPredictor
from entourage.estimators.baselines.base import Baseline
from entourage.estimators.baselines.best_column import BestColumn, BestColumnLogit, BestColumnSubset
from entourage.estimators.baselines.boosted_choosers import BoostedLogit, BoostedSubset
from entourage.estimators.baselines.expected_rank import ExpectedRankRegression
from entourage.estimators.baselines.lambda_mart import LambdaMART
from entourage.estimators.baselines.linear_ranker import LinearRanker
from entourage.estimators.baselines.random_ranker import RandomRanker
from entourage.estimators.baselines.rank_boost import RankBoost
from entourage.estimators.baselines.rank_svm import RankSVM
from entourage.estimators.ranker import Ranker
from entourage.nets import REGISTRY, ContextFree

__all__ = [
    "MODELS",
    "Baseline",
    "BestColumn",
    "BestColumnLogit",
    "BestColumnSubset",
    "BoostedLogit",
    "BoostedSubset",
    "ExpectedRankRegression",
    "LambdaMART",
    "LinearRanker",
    "RandomRanker",
    "RankBoost",
    "RankSVM",
]


def _ranker(net: Any, loss: str) -> Callable[[int], SetPredictor]:
    return lambda seed: Ranker(net(), loss=loss, random_state=seed)


#: The settings of the rows in docs/reproduction.md and docs/depth.md; LambdaMART's own default stops early.
_AS_PUBLISHED: dict[str, Any] = {
    "n_estimators": 300,
    "num_leaves": 31,
    "learning_rate": 0.1,
    "validation": 0.0,
}

#: Every model by the name it has in a table: a function of the seed.
MODELS: dict[str, Callable[[int], SetPredictor]] = {
    "Random": lambda seed: RandomRanker(random_state=seed),
    "ERR": lambda seed: ExpectedRankRegression(),
    "RankSVM": lambda seed: RankSVM(random_state=seed),
    "RankBoost": lambda seed: RankBoost(random_state=seed),
    "RankNet": _ranker(ContextFree, "logistic"),
    "ListNet": _ranker(ContextFree, "listnet"),
    "LambdaMART": lambda seed: LambdaMART(random_state=seed, **_AS_PUBLISHED),
} | {entry.label: _ranker(entry.net, "hinge") for entry in REGISTRY if entry.context}
