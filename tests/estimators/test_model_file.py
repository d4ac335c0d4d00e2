"""Model files: whole or refused."""

import json
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from entourage import ContextFree, Ranker, load
from entourage.choice import MultinomialLogit, NestedLogit
from entourage.cli.program import app
from entourage.data import make_choice, make_medoid
from entourage.errors import ModelFileError
from entourage.estimators.base import NotFittedError
from entourage.training import tensor_file


@pytest.fixture
def ranker():
    X, ranks = make_medoid(n_sets=40, random_state=0)
    return Ranker(ContextFree(width=1, depth=1), steps=4, random_state=0).fit(X, ranks)


@pytest.fixture(params=["ranker", "logit"])
def model(request):
    if request.param == "ranker":
        return request.getfixturevalue("ranker")
    return MultinomialLogit().fit(np.tile([[[1.0], [0.0]]], (4, 1, 1)), [0, 0, 0, 1])


@pytest.fixture
def file(model, tmp_path):
    model.save(tmp_path / "m.entourage")
    return tmp_path / "m.entourage"


@pytest.fixture
def ranker_file(ranker, tmp_path):
    ranker.save(tmp_path / "ranker.entourage")
    return tmp_path / "ranker.entourage"


def test_a_file_changed_in_any_byte_never_loads(file):
    good = file.read_bytes()
    for i in range(len(good)):
        change = (0x01, 0x20, 0xFF)[i % 3]
        file.write_bytes(good[:i] + bytes([good[i] ^ change]) + good[i + 1 :])
        with pytest.raises(ModelFileError):
            load(file)
    file.write_bytes(good)
    load(file)


def test_a_file_cut_short_or_grown_never_loads(file):
    good = file.read_bytes()
    for length in range(len(good)):
        file.write_bytes(good[:length])
        with pytest.raises(ModelFileError):
            load(file)
    file.write_bytes(good + b"\n")
    with pytest.raises(ModelFileError, match="damaged"):
        load(file)


@pytest.mark.parametrize("content", [b"", b"\n", b"PK\x03\x04 a zip", b"entourage-file", b"\x80\x04pickle"])
def test_a_foreign_file_is_refused(tmp_path, content):
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(ModelFileError, match="not a file that Entourage wrote"):
        load(tmp_path / "x")


def test_another_format_says_which(file):
    data = file.read_bytes().replace(b"entourage-file 1 ", b"entourage-file 99 ")
    file.write_bytes(data)
    with pytest.raises(ModelFileError, match="has format 99; this version of Entourage reads format 1"):
        load(file)


def test_a_missing_file_and_a_folder_are_clear_errors(tmp_path):
    with pytest.raises(ModelFileError, match="can't be read: No such file"):
        load(tmp_path / "nowhere")
    with pytest.raises(ModelFileError, match="can't be read"):
        load(tmp_path)


def test_a_checkpoint_is_no_model(tmp_path):
    tensor_file.write(tmp_path / "c", "checkpoint", {}, {"a": torch.zeros(1)})
    with pytest.raises(ModelFileError, match="holds no model"):
        load(tmp_path / "c")


def test_a_failed_write_leaves_the_old_file_and_no_litter(file, model, monkeypatch):
    good = file.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ModelFileError, match=r"No space left on device\. What was there before is untouched"):
        model.save(file)
    assert file.read_bytes() == good
    assert list(file.parent.iterdir()) == [file]


def test_a_folder_that_is_not_there_is_a_clear_error(model, tmp_path):
    with pytest.raises(ModelFileError, match="can't be written: No such file or directory"):
        model.save(tmp_path / "no" / "such" / "m.entourage")


def test_settings_can_be_read_with_the_naked_eye(ranker_file):
    settings = ranker_file.read_bytes().split(b"\n")[1].decode()
    assert '"name": "context_free"' in settings
    assert '"learning_rate"' in settings


def test_estimates_have_names_in_the_file(tmp_path):
    model = MultinomialLogit(l2=0.5).fit(np.tile([[[1.0], [0.0]]], (4, 1, 1)), [0, 0, 0, 1])
    model.save(tmp_path / "m.entourage")
    content, tensors = tensor_file.read(tmp_path / "m.entourage", "model")
    assert content["params"] == {"alternatives": None, "l2": 0.5, "relative": False, "base": None}
    assert content["fitted"]["parameter_names_"] == ["x0"]
    assert tensors["coef_"].tolist() == model.coef_.tolist()
    assert set(content["versions"]) == {"entourage", "torch", "numpy", "python"}


@pytest.mark.parametrize("unfitted", [Ranker(), MultinomialLogit(), NestedLogit([[1, 2]])], ids=repr)
def test_a_model_that_learnt_nothing_is_not_saved(unfitted, tmp_path):
    with pytest.raises(NotFittedError, match="is not fitted yet; call fit"):
        unfitted.save(tmp_path / "m.entourage")
    assert list(tmp_path.iterdir()) == []


def test_a_model_of_a_kind_that_is_not_known_says_which_are(file):
    content, tensors = tensor_file.read(file, "model")
    tensor_file.write(file, "model", content | {"estimator": "NestedLogic"}, tensors)
    with pytest.raises(ModelFileError, match="did you mean 'NestedLogit'?"):
        load(file)


def test_a_file_has_the_rights_of_an_ordinary_one(file, tmp_path):
    (tmp_path / "plain").write_bytes(b"")
    assert file.stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_tensors_come_back_to_the_bit(tmp_path):
    tensors = {"a": torch.randn(3, 4, generator=torch.Generator().manual_seed(0)), "b": torch.arange(3)}
    tensor_file.write(tmp_path / "t", "model", {"x": [1, None, np.pi]}, tensors)
    content, back = tensor_file.read(tmp_path / "t", "model")
    assert content == {"x": [1, None, np.pi]}
    assert all(torch.equal(back[k], tensors[k]) for k in tensors)


@pytest.mark.parametrize(
    "name", ["fate", "attention"]
)  # the latter by other defaults of the net than today's
def test_a_file_written_long_ago_still_predicts_the_same(name):
    folder = Path(__file__).parent / "golden"
    expected = json.loads((folder / f"{name}.json").read_text())
    scores = load(folder / f"{name}.entourage").predict_scores(
        np.array(expected["objects"], dtype=np.float32)
    )
    np.testing.assert_allclose(scores, expected["scores"], atol=1e-5)


def test_a_file_whose_net_had_fewer_weights_is_a_clear_error(ranker_file, tmp_path):
    content, tensors = tensor_file.read(ranker_file, "model")
    gone = next(name for name in tensors if name.startswith("net."))
    older = tmp_path / "older.entourage"
    tensor_file.write(older, "model", content, {k: v for k, v in tensors.items() if k != gone})
    with pytest.raises(ModelFileError, match="Fit the model again"):
        load(older)


def test_info_shows_the_estimates_of_a_choice_model(tmp_path):
    X, y = make_choice(n_sets=50, n_objects=3, random_state=0)
    MultinomialLogit().fit(X, y).save(tmp_path / "logit.entourage")
    shown = CliRunner().invoke(app, ["info", str(tmp_path / "logit.entourage")])
    assert shown.exit_code == 0
    assert "MultinomialLogit: 50 sets, 2 parameters" in shown.stdout
    assert "versions: entourage" in shown.stdout
    plain = CliRunner().invoke(app, ["info", str(tmp_path / "logit.entourage"), "--json"])
    assert json.loads(plain.stdout)["estimator"] == "MultinomialLogit"


def test_a_class_of_ones_own_is_not_written_to_a_file_that_nobody_could_read(tmp_path):
    class Mine(Ranker):
        pass

    X, ranks = make_medoid(n_sets=30, random_state=0)
    model = Mine(ContextFree(width=2), steps=1, random_state=0).fit(X, ranks)
    with pytest.raises(ModelFileError, match="this is a Mine of your own"):
        model.save(tmp_path / "mine.entourage")
    assert not (tmp_path / "mine.entourage").exists()
