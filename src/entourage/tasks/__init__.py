"""Tasks: what targets mean, what is done with scores, and how the result is judged."""

from entourage.tasks.ranking import TASKS, Choice, Ranking, SubsetChoice, task_of

__all__ = ["TASKS", "Choice", "Ranking", "SubsetChoice", "task_of"]
