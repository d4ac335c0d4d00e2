"""The page of the interface in a real browser, without the internet: ``make browser``."""

import pytest
from serving_cases import hotel_chooser, hotels, server

pytestmark = pytest.mark.browser

TOKEN = "a-token-that-nobody-knows"
HOSTILE = '<img src=x onerror="document.title=1">'


def test_the_page_asks_for_the_token_and_sends_the_examples(browser, tmp_path):
    table = hotels()
    table = table.rename_columns([HOSTILE if name == "price" else name for name in table.column_names])
    hotel_chooser(table=table).save(tmp_path / "m.entourage")
    with server(tmp_path / "m.entourage", "--quiet", ENTOURAGE_TOKEN=TOKEN) as (_, port):
        page = browser.new_page()
        asked, faults = [], []
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(f"http://127.0.0.1:{port}/docs")
        page.get_by_text("This server needs a token: enter it above.").wait_for()
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Authorize").click()
        page.get_by_text("This is not the token of the server.").wait_for()
        page.get_by_label("Token").fill(TOKEN)
        page.get_by_role("button", name="Authorize").click()
        one = page.locator("details", has_text="/v1/predict").first
        one.locator("summary").first.click()
        assert HOSTILE.replace('"', '\\"') in one.get_by_label("Body of POST /v1/predict").input_value()
        one.get_by_role("button", name="Send").click()
        one.get_by_text('"probabilities"').wait_for()
        assert one.locator("pre").last.inner_text().startswith("200\n")
        page.screenshot(path=tmp_path / "page.png")
        assert {url.split("/")[2] for url in asked} == {f"127.0.0.1:{port}"}
        assert faults == []
        assert page.title() == "Entourage: the interface"
