"""``entourage demo``: a table beside the paper's figures, and a report."""

from commands import run


def test_the_demo_prints_a_table_beside_the_papers_figures_and_writes_a_report(tmp_path, capsys):
    quick = ["--train-sets", "100", "--test-sets", "1000", "--steps", "20"]
    code, out, err = run(capsys, "demo", "--out", tmp_path / "here", *quick)
    assert code == 0, err
    for figure in ("0.682", "0.759", "0.901", "0.443"):  # the paper's
        assert figure in out
    assert "preference reversals" in " ".join(out.split())
    page = (tmp_path / "here" / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 2
    assert "http" not in page, "self-contained: nothing is loaded from elsewhere"
    assert (tmp_path / "here" / "reversal.png").read_bytes().startswith(b"\x89PNG")
