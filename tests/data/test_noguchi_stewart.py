"""Choices among products: attributes standardised, larger is better."""

import numpy as np
import pytest
from data_files import real, written

from entourage.data.datasets.noguchi_stewart import load_noguchi_stewart
from entourage.errors import DataError

PRODUCTS = """obs,participant,effect,choiceset,alternative,attr1_name,attr2_name,attr1,attr2,chosen
5,ann,compromise,3,A,Price,Quality,250,80,0
5,ann,compromise,3,B,Price,Quality,150,60,1
5,ann,compromise,3,Ca,Price,Quality,350,100,0
2,bob,attraction,3,A,Vitamin,Comfort,1,5,1
2,bob,attraction,3,B,Vitamin,Comfort,3,5,0
2,bob,attraction,3,Da,Vitamin,Comfort,2,5,0
7,bob,compromise,3,A,Price,Quality,250,80,1
7,bob,compromise,3,B,Price,Quality,150,60,0
7,bob,compromise,3,A,Price,Quality,250,80,0
"""


def test_attributes_are_standardised_within_their_choice_set_and_larger_is_better(tmp_path):
    data = load_noguchi_stewart(written(tmp_path / "choices.csv", PRODUCTS))
    step = 1.5**0.5  # of -250, -150, -350: mean -250, deviation sqrt(20000 / 3)
    expected = [
        [0, 0],
        [step, -step],
        [-step, step],
        [-step, 0],
        [step, 0],
        [0, 0],
        [0, 0],
        [step, -step],
        [0, 0],
    ]
    assert np.allclose(data.sets.objects, expected)
    assert data.sets.targets.tolist() == [1, 0, 1, 0, 1, 1, 0, 1, 1]
    assert data.obs.tolist() == [5, 2, 7]
    assert data.effect.tolist() == ["compromise", "attraction", "compromise"]
    assert data.choiceset.tolist() == [3, 3, 3]
    assert data.participant.tolist() == ["ann", "bob", "bob"]
    assert data.alternative.tolist()[:3] == ["A", "B", "Ca"]


def test_a_set_needs_exactly_one_choice(tmp_path):
    twice = PRODUCTS.replace("1,5,1", "1,5,0")
    with pytest.raises(DataError, match=r"line 5: .* one object must be chosen; 0 are"):
        load_noguchi_stewart(written(tmp_path / "choices.csv", twice))
    with pytest.raises(
        DataError, match=r"line 5: chosen needs 1 for what was chosen and 0 otherwise; got '2'"
    ):
        load_noguchi_stewart(written(tmp_path / "choices.csv", PRODUCTS.replace("1,5,1", "1,5,2")))
    with pytest.raises(DataError, match=r"line 5: attr2 needs a number; got 'five'"):
        load_noguchi_stewart(written(tmp_path / "choices.csv", PRODUCTS.replace("1,5,1", "1,five,1")))


def test_the_real_choices_are_2790_of_three():
    data = load_noguchi_stewart(real("noguchi_stewart_2014"))
    assert (len(data.sets), data.sets.uniform_size, data.sets.n_features) == (2790, 3, 2)
    assert {effect: (data.effect == effect).sum() for effect in set(data.effect.tolist())} == {
        "attraction": 930,
        "compromise": 930,
        "similarity": 930,
    }
    assert (data.sets.targets.reshape(-1, 3).sum(1) == 2).all()


def test_in_the_real_choices_a_decoy_is_worse_in_both_attributes_and_others_are_traded():
    data = load_noguchi_stewart(real("noguchi_stewart_2014"))
    X, names = data.sets.to_array(), data.alternative.reshape(-1, 3)
    assert (names[:, :2] == ["A", "B"]).all()
    assert ((X[:, 0] > X[:, 1]).sum(1) == 1).all()  # A is better in one attribute, B in the other
    for third, neighbour in (("Da", 0), ("Db", 1)):
        decoyed = X[names[:, 2] == third]
        assert (decoyed[:, 2] < decoyed[:, neighbour]).all()
