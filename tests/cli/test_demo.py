"""``entourage demo``: a table beside the paper's figures, a report, and a page in which two nets run."""

import importlib.util

import numpy as np
from commands import run

QUICK = ["--train-sets", "100", "--test-sets", "1000", "--steps", "20"]


class FakeExplorer:
    """What explore returns, without an ONNX graph."""

    def save(self, path):
        path.write_text("an explorer")


def test_the_demo_prints_a_table_beside_the_papers_figures_and_writes_two_pages(
    tmp_path, capsys, monkeypatch
):
    made = []

    def explore(model, X, **options):
        made.append((model, X, options))
        return FakeExplorer()

    monkeypatch.setattr("entourage.serving.explorer.explore", explore)
    code, out, err = run(capsys, "demo", "--out", tmp_path / "here", *QUICK)
    assert code == 0, err
    for figure in ("0.682", "0.759", "0.901", "0.443"):  # the paper's
        assert figure in out
    line = next(line for line in out.splitlines() if line.strip().startswith("SetAttention")).split()
    assert line[2::2][:3] == ["–"] * 3, "the paper has no such net"
    assert line[-3] == "2", "an eighth of the steps"
    assert "preference reversals" in " ".join(out.split())
    page = (tmp_path / "here" / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 2
    assert "http" not in page, "self-contained: nothing is loaded from elsewhere"
    assert (tmp_path / "here" / "reversal.png").read_bytes().startswith(b"\x89PNG")
    assert f"Explorer: {tmp_path / 'here' / 'explorer.html'}. FATE runs in it beside SetAttention" in out
    assert '<a href="explorer.html">' in page
    ((model, X, options),) = made
    assert type(model.net).__name__ == "FATE"
    assert type(options["compare"].net).__name__ == options["names"][1] == "SetAttention"
    assert np.shape(X)[1:] == (5, 2)
    first, second = model.predict(X[:1, :4])[0], model.predict(X[:1])[0][:4]
    assert (options["presets"][0].set, options["presets"][0].selected) == (0, 4)
    assert (np.argsort(first) != np.argsort(second)).any(), "the fifth point changes the order"


def test_without_the_extra_the_demo_says_how_to_get_the_page(tmp_path, capsys, monkeypatch):
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "onnx" else found(name))
    code, out, err = run(capsys, "demo", "--out", tmp_path, *QUICK)
    assert code == 0, err
    words = "An explorer needs onnx: run pip install 'entourage[onnx]'."
    assert words in out
    assert words.replace("'", "&#39;") in (tmp_path / "report.html").read_text()
    assert not (tmp_path / "explorer.html").exists()
