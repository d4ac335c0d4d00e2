"""What ``entourage serve`` refuses before it listens, and how tokens and names are read."""

import socket
import sys

import numpy as np
import pytest
from commands import run

from entourage.choice import MultinomialLogit
from entourage.errors import UserError
from entourage.serving.models import named_paths
from entourage.serving.run import open_socket
from entourage.serving.security import check_bind, read_token

LONG = "0123456789abcdef"


@pytest.fixture
def model(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3, 1))
    path = tmp_path / "m.entourage"
    MultinomialLogit(l2=1.0).fit(X, rng.integers(0, 3, 50)).save(path)
    return path


def test_an_address_that_others_reach_needs_a_token(capsys, model, monkeypatch):
    monkeypatch.delenv("ENTOURAGE_TOKEN", raising=False)
    code, _, error = run(capsys, "serve", model, "--host", "0.0.0.0")
    assert code == 2
    assert "a token is needed: --token-file FILE" in " ".join(error.split())
    for host in ("127.0.0.1", "::1", "localhost"):
        check_bind(host, None)
    check_bind("0.0.0.0", LONG)


def test_tokens_come_from_a_file_or_the_environment_and_are_long(tmp_path, monkeypatch):
    monkeypatch.delenv("ENTOURAGE_TOKEN", raising=False)
    assert read_token(None) is None
    file = tmp_path / "token"
    file.write_text(f"{LONG}\n")
    assert read_token(file) == LONG
    monkeypatch.setenv("ENTOURAGE_TOKEN", LONG[::-1])
    assert read_token(None) == LONG[::-1]
    assert read_token(file) == LONG
    for short in ("", "short", "with a space in between"):
        file.write_text(short)
        with pytest.raises(UserError, match="at least 16 printable") as caught:
            read_token(file)
        assert not short or short not in str(caught.value)
    monkeypatch.setenv("ENTOURAGE_TOKEN", "")
    with pytest.raises(UserError, match="ENTOURAGE_TOKEN needs at least"):
        read_token(None)
    with pytest.raises(UserError, match="can't be read"):
        read_token(tmp_path / "none")


def test_models_are_named_by_their_files_or_as_given():
    assert {name: str(path) for name, path in named_paths(["a.entourage", "b=x/y.entourage"]).items()} == {
        "a": "a.entourage",
        "b": "x/y.entourage",
    }
    with pytest.raises(UserError, match="Two models are named 'a'"):
        named_paths(["a.entourage", "x/a.entourage"])


def test_a_port_that_is_taken_is_said(capsys, model):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        code, _, error = run(capsys, "serve", model, "--port", taken.getsockname()[1])
    assert code == 2
    assert "Can't listen at 127.0.0.1" in error


def test_answers_do_not_wait_for_an_acknowledgement():
    with open_socket("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP  # or asyncio leaves Nagle's algorithm on


def test_a_file_that_is_no_model_is_said(capsys, tmp_path):
    path = tmp_path / "m.entourage"
    path.write_text("nothing")
    code, _, error = run(capsys, "serve", path)
    assert code == 2
    assert "m.entourage" in error


def test_a_missing_package_is_named_with_what_to_install(monkeypatch):
    import entourage.serving

    for name in [name for name in sys.modules if name.startswith("entourage.serving.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    with pytest.raises(UserError, match=r"Serving needs fastapi: run pip install 'entourage\[serve\]'\."):
        entourage.serving.create_app  # noqa: B018
