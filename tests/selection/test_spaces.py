"""The declared space of settings of every model."""

import pytest

from entourage import FATE, ContextFree
from entourage.baselines import MODELS
from entourage.selection.spaces import SPACES, present_choice, space_of


@pytest.mark.parametrize("name", [name for name in MODELS if name != "Random"])
def test_every_model_has_a_space_and_its_defaults_lie_in_it(name):
    model = MODELS[name](0)
    assert space_of(model)
    assert present_choice(model, space_of(model)) is not None


def test_spaces_cover_what_is_to_be_tuned():
    searched = set(" ".join(SPACES[FATE]).split())
    assert searched >= {
        "net__width", "net__depth", "net__embedding_size", "net__embedding_depth", "learning_rate",
        "batch_size", "l1", "l2", "net__activation", "net__norm", "loss",
    }  # fmt: skip
    assert "loss" not in " ".join(SPACES[ContextFree])
