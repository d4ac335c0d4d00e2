"""Figures of context effects are drawn, and say what they can't draw."""

from dataclasses import replace

import numpy as np
import pytest
from effect_cases import MIXED, PUSHED, C, Model, T, alone, near_dominated

from entourage.effects import context_test, effects_report, influence_matrix, natural_effects
from entourage.effects.plots import (
    draw_context_test,
    draw_decoys,
    draw_effects,
    draw_influence,
    draw_natural_effects,
)
from entourage.errors import DataError, ShapeError

RNG = np.random.default_rng(0)
TESTED = context_test(np.random.default_rng(1).normal(size=(9, 3, 1)), [0, 1, 2] * 3, draws=1)


def test_pictures_are_drawn(tmp_path):
    model = Model(lambda x: np.sin(x @ x.sum(0)))
    figures = [
        draw_influence(influence_matrix(model, RNG.normal(size=(1, 6, 2)))[0], list("abcdef")),
        draw_influence(np.full((2, 2), np.nan)),
        draw_effects(effects_report(model, MIXED)),
        draw_effects(effects_report(Model(alone), MIXED[:1])),
        draw_natural_effects(natural_effects(model, RNG.normal(size=(20, 5, 2)))),
        draw_natural_effects(natural_effects(model, np.stack([T, C, T - 0.1], 1)[:1])),
        draw_decoys(Model(near_dominated), T[0], C[0], [[0, 0], [3, 3]], points=11),
        draw_decoys(Model(alone), T[0], C[0], [[0, 0], [3, 3]], points=5),
        draw_context_test(context_test(RNG.normal(size=(60, 3, 1)), np.arange(60) % 3, draws=9)),
    ]
    for i, figure in enumerate(figures):
        figure.savefig(tmp_path / f"{i}.png", dpi=40)
        assert (tmp_path / f"{i}.png").stat().st_size > 1000


@pytest.mark.parametrize(
    ("wrong", "error", "words"),
    [
        (lambda: draw_influence(PUSHED), ShapeError, "One influence matrix"),
        (lambda: draw_influence(np.eye(2), ["a"]), ShapeError, "one for each of 2"),
        (lambda: draw_effects({}), DataError, "an EffectsReport; got dict"),
        (
            lambda: draw_natural_effects(natural_effects(Model(alone), PUSHED, ordered=[])),
            DataError,
            "nothing to draw",
        ),
        (lambda: draw_context_test(replace(TESTED, null=[])), DataError, "simulated no choices"),
    ],
)
def test_wrong_input_says_what_is_needed(wrong, error, words):
    with np.errstate(divide="ignore"), pytest.raises(error, match=words):
        wrong()


def test_a_change_that_rounds_to_nothing_has_no_minus():
    figure = draw_influence([[np.nan, -0.001], [0.5, np.nan]])
    assert [text.get_text() for text in figure.axes[0].texts] == ["+0.00", "+0.50"]
