"""The task of each kind of target that a table may have."""

from entourage.errors import ParameterError, check_choice
from entourage.tasks.choice import Choice
from entourage.tasks.protocol import Task
from entourage.tasks.ranking import Ranking
from entourage.tasks.subset import SubsetChoice

__all__ = ["TASKS", "task_of"]

#: The task of each kind of target that a table may have.
TASKS: dict[str, Task] = {
    "rank": Ranking(),
    "relevance": Ranking(),
    "choice": Choice(),
    "subset": SubsetChoice(),
}


def task_of(kind: str, *, outside: bool = False) -> Task:
    """Return the task of a kind of target; with ``outside``, there is an outside option.

    Examples
    --------
    >>> task_of("choice", outside=True).outside
    True
    """
    task = TASKS[check_choice("kind", kind, TASKS)]
    if not outside:
        return task
    if kind != "choice":
        raise ParameterError(
            f'outside=True is for discrete choice: it goes with kind="choice"; got {kind!r}.'
        )
    return Choice(outside=True)
