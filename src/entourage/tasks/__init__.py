"""Tasks: what targets mean, what is done with scores, and how predictions are evaluated."""

from entourage.tasks.choice import Choice
from entourage.tasks.evaluate import evaluate_scores, mean_over_sets, metric_of_sets
from entourage.tasks.kinds import TASKS, task_of
from entourage.tasks.protocol import Task
from entourage.tasks.ranking import Ranking
from entourage.tasks.subset import SubsetChoice

__all__ = [
    "TASKS",
    "Choice",
    "Ranking",
    "SubsetChoice",
    "Task",
    "evaluate_scores",
    "mean_over_sets",
    "metric_of_sets",
    "task_of",
]
