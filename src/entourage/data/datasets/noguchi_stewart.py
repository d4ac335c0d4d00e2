"""Choices among three products, in which people show the attraction, compromise and similarity effects.

Nothing is downloaded here. The choices are those of Noguchi and Stewart (2014), "In the attraction, compromise, and
similarity effects, alternatives are repeatedly compared in pairs on single dimensions", Cognition 132, 44-56,
https://doi.org/10.1016/j.cognition.2014.03.006 (CC BY 4.0), as one CSV file with a row for each product of a trial.
"""

import os
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from entourage.data.datasets.csv_columns import CsvColumns, find_csv
from entourage.data.grouping import group_rows
from entourage.data.sets import Sets

__all__ = ["ProductChoices", "load_noguchi_stewart"]

Floats = NDArray[np.float64]
Text = NDArray[np.str_]
Index = NDArray[np.int64]

# Attributes of which less is better. In the attraction sets this follows from the decoy, which is worse
# than its neighbour in both attributes; in the others one attribute is traded for the other, which
# leaves one bit, and names and units (accuracy in metres, an update rate in Hz) settle it. Calories
# count against a juice and for a workout, hence the effect beside the name.
_LESS_IS_BETTER = frozenset(
    {
        ("attraction", "Calories"),
        ("attraction", "Commute"),
        ("attraction", "Cost"),
        ("attraction", "Crimes"),
        ("attraction", "Repair rate"),
        ("attraction", "Weight"),
        ("compromise", "Accuracy"),
        ("compromise", "Consumption"),
        ("compromise", "Fee"),
        ("compromise", "Noise"),
        ("compromise", "Price"),
        ("similarity", "Price"),
        ("similarity", "Study hours"),
    }
)
_HOME = "The choices are Noguchi and Stewart's (2014), doi 10.1016/j.cognition.2014.03.006"


@dataclass(frozen=True, eq=False)
class ProductChoices:
    """Choices among three products with two attributes.

    Attributes
    ----------
    sets : one set a trial; the chosen product has rank 0, the others 1
    obs : integer array of shape (sets,), the number of the trial in the file
    effect : text array of shape (sets,): "attraction", "compromise" or "similarity"
    choiceset : integer array of shape (sets,), numbered within each effect
    participant : text array of shape (sets,), who chose: keep a person on one side of a split
    alternative : text array of shape (objects,): "A", "B", or what was added to them, as "Da" beside "A"
    """

    sets: Sets
    obs: Index
    effect: Text
    choiceset: Index
    participant: Text
    alternative: Text


def load_noguchi_stewart(path: str | os.PathLike[str]) -> ProductChoices:
    """Load choices among three products: the attraction, compromise and similarity effects in people.

    The two attributes have other scales for each product: they are standardised over the distinct
    alternatives of their choice set (its number counts within an effect), and their sign is changed where less is
    better, as with a price, so that larger is better throughout.

    Parameters
    ----------
    path : the CSV file, compressed or not, or the folder that holds choices_long.csv
    """
    columns = ("obs", "participant", "effect", "choiceset", "alternative", "attr1_name", "attr2_name")
    file = find_csv(path, "choices_long.csv", _HOME)
    table = CsvColumns(file, (*columns, "attr1", "attr2", "chosen"), _HOME)
    obs, choicesets = table.whole("obs"), table.whole("choiceset")
    effects, alternatives = table.text("effect"), table.text("alternative")
    attributes = np.stack(
        [_larger_is_better(table, effects, f"attr{i}") for i in (1, 2)], axis=1
    )  # (rows, 2)
    _, product = np.unique(np.char.add(effects, choicesets.astype(str)), return_inverse=True)
    named = np.char.add(np.char.add(product.astype(str), " "), alternatives)
    _, kinds = np.unique(named, return_index=True)
    features = np.empty_like(attributes)
    for i in range(int(product.max()) + 1):
        distinct = attributes[kinds[product[kinds] == i]]
        spread = np.where(np.ptp(distinct, axis=0) > 0, distinct.std(0), 1)
        features[product == i] = (attributes[product == i] - distinct.mean(0)) / spread
    rows, offsets, first = group_rows(obs)
    ranks = table.choices("chosen", rows, offsets)
    sets = Sets(features[rows].astype(np.float32), offsets, ranks)
    return ProductChoices(
        sets,
        obs[first],
        effects[first],
        choicesets[first],
        table.text("participant")[first],
        alternatives[rows],
    )


def _larger_is_better(table: CsvColumns, effects: Text, name: str) -> Floats:
    pairs = zip(effects.tolist(), table.text(f"{name}_name").tolist(), strict=True)
    signs = np.array([-1.0 if pair in _LESS_IS_BETTER else 1.0 for pair in pairs])
    return signs * table.numbers(name)
