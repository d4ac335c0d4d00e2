"""Pages: what they need is said before the long work, and what is written is whole."""

import pytest

from entourage.errors import UserError
from entourage.report import Section, Table, make_folder, page, require_report, write_report


def test_what_a_report_needs_is_said_before_the_long_work(monkeypatch):
    monkeypatch.setattr(page.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UserError, match=r"matplotlib and jinja2: run pip install 'entourage\[report\]'"):
        require_report()


def test_a_page_holds_text_tables_and_pictures_and_escapes_what_users_wrote(tmp_path):
    picture = tmp_path / "p.png"
    picture.write_bytes(b"\x89PNG")
    table = Table(["model", "score"], [["<b>", ("0.9", "best")], ["B", ("left", "text")]])
    write_report(tmp_path / "r.html", "A & B", "Lead.", [Section("One", "Text.", table, [(picture, "seen")])])
    written = (tmp_path / "r.html").read_text()
    assert "<title>A &amp; B</title>" in written
    assert "<td>&lt;b&gt;</td><td" in written.replace("\n", "")
    assert '<td class="best">0.9</td>' in written
    assert "data:image/png;base64,iVBORw==" in written
    assert written.count("<h2>") == 1


def test_a_page_or_folder_that_cannot_be_written_is_a_users_mistake(tmp_path):
    with pytest.raises(UserError, match="can't be written: No such file or directory"):
        write_report(tmp_path / "nowhere" / "r.html", "", "", [])
    (tmp_path / "taken").write_text("")
    with pytest.raises(UserError, match="can't be made a folder for results"):
        make_folder(tmp_path / "taken")
