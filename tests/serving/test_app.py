"""The routes of the server, asked within the process."""

import asyncio
import base64
import hashlib
import json
import shutil
from pathlib import Path

import httpx
import numpy as np
import pytest
from serving_cases import COLUMNS, HOST, ask, ask_all, hotel_chooser, hotels, packed, refused, sets_in_json

from entourage import Sets, load
from entourage.choice import MultinomialLogit
from entourage.decisions import what_if
from entourage.effects import influence_matrix
from entourage.errors import UserError
from entourage.serving import Limits, create_app


def logit(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(100, 3, 2))
    return MultinomialLogit().fit(X, (X @ [1.0, -1.0] + rng.gumbel(size=(100, 3))).argmax(1))


@pytest.fixture(scope="module")
def chooser():
    return hotel_chooser()


@pytest.fixture(scope="module")
def app(chooser):
    return create_app({"hotels": chooser, "plain": logit()})


ARRAYS = {"sets": [{"objects": [[1.0, 0.0], [0.0, 1.0]]}], "model": "plain"}


def scores_of(model):
    return model.predict_scores([np.array(ARRAYS["sets"][0]["objects"])])[0]


def hotel_body(n=1, seed=3):
    return {"sets": sets_in_json(hotels(n, seed))}


def test_predictions_equal_those_of_python_on_tables_with_text_and_missing_values(app, chooser):
    table = hotels(40, seed=1)
    answer = ask(app, "/v1/predict", {"sets": sets_in_json(table)})
    assert answer.status_code == 200
    assert answer.json()["model"] == "hotels"
    found = answer.json()["sets"]
    np.testing.assert_allclose(packed(found, "scores"), chooser.predict_scores(table), atol=1e-5)
    np.testing.assert_allclose(packed(found, "probabilities"), chooser.predict_proba(table), atol=1e-5)
    assert [one["ranks"].index(0) for one in found] == [int(np.argmax(one["probabilities"])) for one in found]
    assert [len(one["scores"]) for one in found] == [len(one["objects"]) for one in sets_in_json(table)]


def test_requests_at_once_share_passes_and_are_answered_as_if_alone(app):
    bodies = [{"sets": [one]} for one in sets_in_json(hotels(30, seed=2))]
    together = ask_all(app, [("POST", "/v1/predict", body) for body in bodies])
    for body, answer in zip(bodies, together, strict=True):
        alone = ask(app, "/v1/predict", body).json()["sets"][0]
        np.testing.assert_allclose(answer.json()["sets"][0]["scores"], alone["scores"], atol=1e-5)
    shared = ask(app, "/metrics", method="GET").text
    passes = float(shared.split('entourage_batch_requests_count{model="hotels"} ')[1].split("\n")[0])
    requests = float(shared.split('entourage_batch_requests_sum{model="hotels"} ')[1].split("\n")[0])
    assert passes < requests


def test_large_bodies_are_answered_too(app, chooser):
    table = hotels(200, seed=5)
    body = {"sets": sets_in_json(table)}
    assert len(json.dumps(body)) > 2**16
    scores = packed(ask(app, "/v1/predict", body).json()["sets"], "scores")
    np.testing.assert_allclose(scores, chooser.predict_scores(table), atol=1e-5)


def test_models_go_by_name_in_the_body_and_in_the_path(app):
    by_body = ask(app, "/v1/predict", ARRAYS)
    by_path = ask(app, "/v1/models/plain/predict", {"sets": ARRAYS["sets"]})
    assert by_body.json() == by_path.json()
    assert by_body.json()["model"] == "plain"
    assert ask(app, "/v1/models/none/predict", ARRAYS).status_code in (404, 422)
    message, _ = refused(ask(app, "/v1/predict", ARRAYS | {"model": "../../etc/passwd"}))
    assert message == "There is no model of this name; there are hotels, plain."
    assert refused(ask(app, "/v1/predict", ARRAYS | {"model": 3}))[1] == "model"
    assert refused(ask(app, "/v1/models/hotels/predict", ARRAYS))[1] == "model"


def test_a_model_says_what_it_needs(app):
    found = ask(app, "/v1/model", method="GET").json()
    assert (found["name"], found["task"], found["estimator"]) == (
        "hotels",
        "discrete choice",
        "DiscreteChooser",
    )
    assert [column["name"] for column in found["columns"]] == COLUMNS
    assert found["columns"][0] == {"name": "price", "kind": "number", "missing_seen": True}
    assert found["columns"][3] == {"name": "brand", "kind": "text", "levels": ["c", "a", "b"]}
    assert [column["name"] for column in found["situation"]] == ["nights", "device"]
    both = ask(app, "/v1/models", method="GET").json()["models"]
    assert both[0] == found
    assert both[1]["n_features"] == 2
    assert ask(app, "/v1/models/plain", method="GET").json() == both[1]


def test_influence_equals_that_of_python(app, chooser):
    table = hotels(40, seed=1)
    trip = int(np.argmax(np.bincount(table["trip"])))
    own = table.filter(np.asarray(table["trip"]) == trip)
    answer = ask(app, "/v1/influence", {"sets": sets_in_json(own)}).json()
    sets = Sets.from_frame(own, like=Sets.from_frame(hotels(), **_roles()))
    expected = influence_matrix(chooser, sets)[0]
    found = np.array([[np.nan if value is None else value for value in row] for row in answer["influence"]])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    np.testing.assert_allclose(answer["mean_absolute_influence"], np.nanmean(np.abs(expected), 0), atol=1e-5)


def _roles():
    return {"set_id": "trip", "target": "chosen", "target_kind": "choice", "situation": ["nights", "device"]}


def test_influence_is_of_one_set_of_three_objects_or_more(app):
    assert refused(ask(app, "/v1/influence", hotel_body(2)))[0] == "Influence is of one set at a time; got 2."
    message, path = refused(ask(app, "/v1/influence", ARRAYS))
    assert message == "Influence needs a set of 3 to 100 objects; got 2."
    assert path == "sets[0].objects"


def test_what_if_equals_that_of_python(app, chooser):
    table = hotels(6, seed=4)
    body = {"sets": sets_in_json(table), "change": "price *= 1.1", "where": 'brand == "a" and wifi == True'}
    answer = ask(app, "/v1/whatif", body).json()
    expected = what_if(chooser, table, change="price *= 1.1", where='brand == "a" and wifi == True')
    rows = [row for one in answer["sets"] for row in one["objects"]]
    np.testing.assert_allclose([row["before"] for row in rows], expected.before.value, atol=1e-5)
    np.testing.assert_allclose([row["after"] for row in rows], expected.after.value, atol=1e-5)
    assert [row["role"] for row in rows] == expected.roles
    assert {share["role"] for share in answer["shares"]} == {"changed", "others"}


def test_what_if_adds_and_removes_objects(app):
    body = hotel_body(3, seed=7)
    new = {"price": 10.0, "stars": 5, "wifi": True, "brand": "c"}
    answer = ask(app, "/v1/whatif", body | {"add": [new], "remove": "stars < 2"}).json()
    for one, given in zip(answer["sets"], body["sets"], strict=True):
        assert [row["role"] for row in one["objects"]].count("added") == 1
        for row, before in zip(one["objects"], given["objects"], strict=False):
            assert (row["after"] is None) == (row["role"] == "removed") == (before["stars"] < 2)
        assert one["objects"][-1]["before"] is None
        assert sum(row["after"] or 0 for row in one["objects"]) == pytest.approx(1)
    answer = ask(app, "/v1/whatif", ARRAYS | {"change": "x0 += 1", "where": "x1 > 0"}).json()
    assert [row["role"] for row in answer["sets"][0]["objects"]] == ["others", "changed"]
    assert answer["surplus"] > 0


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "Nothing changes: give change, add or remove."),
        ({"change": 3}, "change needs text"),
        ({"change": []}, "change needs text"),
        ({"change": "__import__('os').system('true')"}, "A change assigns to a column"),
        ({"change": "price = __import__('os')"}, "is not known"),
        ({"change": "price = open('/etc/passwd')"}, "is not known"),
        ({"change": "prise = 3"}, "prise"),
        ({"change": "price = " + "-" * 1900 + "price"}, "nested too deeply"),
        ({"change": "price = " + "(" * 900 + "1" + ")" * 900}, "can't be read"),
        ({"change": "price = " + "9" * 1900}, "too large"),
        ({"change": "price = 9 ** 9 ** 9 ** 9"}, "no finite number"),
        ({"change": "x" * 5000}, "at most 2000 characters"),
        ({"change": "price *= 2", "where": ["x"]}, "where needs a condition"),
        ({"remove": "price is None or price is not None"}, "leaves nothing"),
        ({"add": []}, "add needs a list"),
        ({"add": [{"price": 1}]}, "lacks 'stars'"),
        ({"add": [{"price": "1", "stars": 1, "wifi": True, "brand": "a"}]}, "needs a number"),
    ],
)
def test_changes_that_can_not_be_made_are_refused(app, changes, said):
    answer = ask(app, "/v1/whatif", hotel_body() | changes)
    assert answer.status_code == 422
    assert said in answer.json()["error"]["message"]


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "The body is no JSON"),
        (b"{", "The body is no JSON: Expecting property name enclosed in double quotes in line 1, column 2."),
        (b"\xff\xfe\x00", "no JSON that can be read"),
        (b"[" * 100_000, "no JSON that can be read"),
        (b'{"sets": ' + b"9" * 5000 + b"}", "no JSON that can be read"),
        (b"[1]", "The body is an object with sets in it; got a list."),
        (b'{"set": []}', "did you mean 'sets'?"),
        (b'{"sets": [{"objects": [[1e400, 0]]}], "model": "plain"}', "got an infinite number"),
        (b'{"sets": [{"objects": [[NaN, 0]]}], "model": "plain"}', "got NaN"),
    ],
)
def test_a_body_that_can_not_be_read_is_refused(app, body, said):
    answer = ask(app, "/v1/predict", body)
    assert answer.status_code == 422
    assert said in refused(answer)[0]


def test_features_too_far_from_those_learnt_from_fail_alone(app):
    far = hotel_body(1, seed=8)
    far["sets"][0]["objects"][0]["stars"] = 1e300
    answers = ask_all(app, [("POST", "/v1/predict", body) for body in (hotel_body(), far, hotel_body())])
    assert [one.status_code for one in answers] == [200, 422, 200]
    assert "set 0 are not finite" in refused(answers[1])[0]


def test_large_bodies_are_refused_whether_or_not_they_say_their_length(chooser):
    app = create_app(chooser, limits=Limits(body=1000))
    body = json.dumps(hotel_body(20)).encode()
    answer = ask(app, "/v1/predict", body)
    assert answer.status_code == 413
    assert refused(answer)[0] == "A request takes at most 1000 bytes. Send fewer sets at once."

    async def in_parts():
        for start in range(0, len(body), 100):
            yield body[start : start + 100]

    async def send():
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=HOST) as client:
            headers = {"content-type": "application/json"}
            return await client.post("/v1/predict", content=in_parts(), headers=headers)

    assert asyncio.run(send()).status_code == 413


def test_a_body_that_never_comes_is_given_up(chooser):
    app = create_app(chooser, limits=Limits(seconds=0.05))
    sent = []

    async def receive():
        await asyncio.sleep(60)

    async def send(message):
        sent.append(message)

    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/v1/predict", "headers": headers, "query_string": b""}
    asyncio.run(app(scope, receive, send))
    assert sent[0]["status"] == 408


def test_other_content_paths_and_methods_are_refused(app):
    assert ask(app, "/v1/predict", method="GET").status_code == 405
    assert refused(ask(app, "/v1/predict", method="GET"))[0] == "This path takes another method."
    assert ask(app, "/v2", method="GET").status_code == 404

    async def send():
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=HOST) as client:
            return await client.post("/v1/predict", content=b"{}", headers={"content-type": "text/plain"})

    assert asyncio.run(send()).status_code == 415
    compressed = ask(app, "/v1/predict", hotel_body(), headers={"content-encoding": "gzip"})
    assert compressed.status_code == 415
    assert refused(compressed)[0].startswith("The body needs to come as it is, not compressed")
    assert ask(app, "/v1/models/", method="GET").status_code == 404  # and no redirect


def test_a_token_is_needed_where_there_is_one(chooser):
    token = "a-token-of-enough-characters"
    app = create_app(chooser, token=token)
    for headers in (
        {},
        {"authorization": "Bearer wrong"},
        {"authorization": token},
        {"authorization": "Bearer "},
    ):
        for path, method in (
            ("/v1/predict", "POST"),
            ("/v1/model", "GET"),
            ("/metrics", "GET"),
            ("/openapi.json", "GET"),
        ):
            answer = ask(app, path, hotel_body(), method, headers=headers)
            assert answer.status_code == 401
            assert answer.headers["www-authenticate"] == "Bearer"
            assert token not in answer.text
    right = {"authorization": f"bearer {token}"}
    assert ask(app, "/v1/predict", hotel_body(), headers=right).status_code == 200
    assert ask(app, "/healthz", method="GET").json() == {"status": "alive"}
    assert ask(app, "/readyz", method="GET").json() == {"status": "ready"}
    assert ask(app, "/openapi.json", method="GET", headers=right).json()["security"] == [{"token": []}]


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost", "[::1]:80", "localhost:1"])
def test_names_of_this_machine_are_answered(chooser, host):
    app = create_app(chooser, this_machine=True)
    assert ask(app, "/v1/model", method="GET", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example", ""])
def test_other_names_are_refused_so_that_no_page_can_rebind_them(chooser, host):
    app = create_app(chooser, this_machine=True)
    assert ask(app, "/v1/model", method="GET", headers={"host": host}).status_code == 421


@pytest.mark.parametrize(
    ("origin", "status"), [("https://evil.example", 421), ("null", 421), (HOST + ":8000", 200)]
)
def test_pages_of_other_origins_are_refused(chooser, origin, status):
    app = create_app(chooser, this_machine=True)
    assert ask(app, "/v1/model", method="GET", headers={"origin": origin}).status_code == status


def test_the_examples_of_the_pages_work(app):
    document = ask(app, "/openapi.json", method="GET").json()
    tried = 0
    for path, methods in document["paths"].items():
        if "requestBody" in methods.get("post", {}):
            example = methods["post"]["requestBody"]["content"]["application/json"]["example"]
            assert ask(app, path, example).status_code == 200, path
            tried += 1
    assert tried == 9


def test_the_page_needs_no_token_and_says_nothing_and_its_script_and_style_are_allowed_to_run(chooser):
    app = create_app(chooser, token="a-token-of-enough-characters")
    page = ask(app, "/docs", method="GET")
    assert page.status_code == 200
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for told in (*COLUMNS, "//", "src=", "innerHTML"):
        assert told not in page.text.replace("// in this page", "").replace("// names of columns", "")
    policy = page.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; ")
    for kind in ("script", "style"):
        content = page.text.split(f"<{kind}>")[1].split(f"</{kind}>")[0]
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy
    assert ask(app, "/openapi.json", method="GET").status_code == 401
    assert ask(app, "/redoc", method="GET").status_code == 401


def test_errors_of_the_server_itself_tell_nothing(app, chooser, monkeypatch, caplog):
    def broken(sets):
        raise RuntimeError("secret at /work/model")

    monkeypatch.setattr(chooser, "predict_scores", broken)
    answer = ask(app, "/v1/predict", hotel_body())
    assert answer.status_code == 500
    assert refused(answer)[0] == "Something went wrong in the server; its log says what."
    assert "secret" in caplog.text


def test_the_digest_is_that_of_the_model_also_where_the_file_is_replaced_meanwhile(tmp_path, monkeypatch):
    path = tmp_path / "m.entourage"
    contents = {}
    for seed in (0, 1):
        logit(seed).save(path)
        contents[seed] = path.read_bytes()
    app = create_app(path)
    read = Path.read_bytes

    def read_then_replace(self):
        data = read(self)
        if self == path:
            path.write_bytes(contents[0] if data == contents[1] else contents[1])
        return data

    monkeypatch.setattr(Path, "read_bytes", read_then_replace)
    for _ in range(2):
        told = ask(app, "/v1/reload").json()["models"][0]
        seed = next(
            seed for seed, data in contents.items() if hashlib.sha256(data).hexdigest() == told["sha256"]
        )
        answer = ask(app, "/v1/predict", {"sets": ARRAYS["sets"]}).json()
        np.testing.assert_allclose(answer["sets"][0]["scores"], scores_of(logit(seed)), atol=1e-9)


def test_the_log_has_one_line_a_request_without_what_was_in_it(app, caplog):
    caplog.set_level("INFO", logger="entourage.serving")
    ask(app, "/v1/predict", hotel_body() | {"model": "hotels"}, headers={"authorization": "Bearer secret"})
    ask(app, "/v1/no%0Asuch", method="GET")
    lines = [record.getMessage() for record in caplog.records if record.name == "entourage.serving"]
    assert [line.rsplit(" ", 2)[0] for line in lines] == ["POST /v1/predict 200", "GET other 404"]


def test_metrics_count_requests_by_route_and_status(chooser):
    app = create_app(chooser)
    ask(app, "/v1/predict", hotel_body())
    ask(app, "/v1/predict", {})
    text = ask(app, "/metrics", method="GET").text
    assert 'entourage_requests_total{route="/v1/predict",status="200"} 1.0' in text
    assert 'entourage_requests_total{route="/v1/predict",status="422"} 1.0' in text
    assert 'entourage_waiting_requests{model="model"} 0.0' in text
    assert "process_cpu_seconds_total" in text


def test_metrics_count_values_that_the_model_never_saw(chooser):
    app, body = create_app(chooser), hotel_body(2)
    ask(app, "/v1/predict", body)
    assert "entourage_unfamiliar_values_total{" not in ask(app, "/metrics", method="GET").text
    first, second = body["sets"][0]["objects"][:2]
    first["brand"], second["brand"], first["stars"], first["price"] = "new", "newer", None, None
    assert ask(app, "/v1/predict", body).status_code == 200
    text = ask(app, "/metrics", method="GET").text
    assert 'entourage_unfamiliar_values_total{column="brand",kind="level",model="model"} 2.0' in text
    assert 'entourage_unfamiliar_values_total{column="stars",kind="missing",model="model"} 1.0' in text
    assert 'column="price"' not in text  # prices were missing in training, too


def test_a_new_file_takes_the_place_of_the_old_one_and_a_broken_one_does_not(tmp_path):
    first, second = logit(0), logit(1)
    path = tmp_path / "m.entourage"
    first.save(path)
    app = create_app(path)
    before = ask(app, "/v1/predict", {"sets": ARRAYS["sets"]}).json()
    second.save(path)
    assert ask(app, "/v1/predict", {"sets": ARRAYS["sets"]}).json() == before
    answer = ask(app, "/v1/reload", None)
    assert answer.status_code == 200
    after = ask(app, "/v1/predict", {"sets": ARRAYS["sets"]}).json()
    np.testing.assert_allclose(after["sets"][0]["scores"], scores_of(second), atol=1e-6)
    assert after != before
    path.write_bytes(b"no model")
    answer = ask(app, "/v1/reload", None)
    assert answer.status_code == 409
    assert str(tmp_path) not in answer.text
    assert "the one in use stays" in refused(answer)[0]
    assert ask(app, "/v1/predict", {"sets": ARRAYS["sets"]}).json() == after
    text = ask(app, "/metrics", method="GET").text
    assert 'entourage_reloads_total{model="m",outcome="failed"} 1.0' in text


def test_where_one_of_two_files_is_broken_both_stay(tmp_path):
    logit(0).save(tmp_path / "a.entourage")
    shutil.copy(tmp_path / "a.entourage", tmp_path / "b.entourage")
    app = create_app({name: tmp_path / f"{name}.entourage" for name in "ab"})
    before = ask(app, "/v1/models", method="GET").json()
    logit(1).save(tmp_path / "a.entourage")
    (tmp_path / "b.entourage").write_bytes(b"")
    assert ask(app, "/v1/reload", None).status_code == 409
    assert ask(app, "/v1/models", method="GET").json() == before
    answer = ask(app, "/v1/models/a/reload", None)
    assert answer.json()["models"][0]["sha256"] != before["models"][0]["sha256"]


def test_requests_during_a_reload_keep_to_the_model_they_began_with(tmp_path):
    models = [logit(0), logit(1)]
    path = tmp_path / "m.entourage"
    models[0].save(path)
    app = create_app(path)
    expected = {round(float(scores_of(one)[0]), 6) for one in models}
    models[1].save(path)
    body = {"sets": ARRAYS["sets"]}
    asked = (
        [("POST", "/v1/predict", body)] * 10
        + [("POST", "/v1/reload", None)]
        + [("POST", "/v1/predict", body)] * 10
    )
    answers = ask_all(app, asked)
    assert [one.status_code for one in answers] == [200] * 21
    seen = {round(one.json()["sets"][0]["scores"][0], 6) for one in answers[:10] + answers[11:]}
    assert seen <= expected


def test_a_model_from_memory_is_not_read_again(chooser):
    assert ask(create_app(chooser), "/v1/reload", None).status_code == 409


def test_what_can_not_be_served_is_an_error_at_the_start(tmp_path, chooser):
    with pytest.raises(UserError, match="at least one model"):
        create_app({})
    with pytest.raises(UserError, match="name of a model"):
        create_app({"../x": chooser})
    with pytest.raises(UserError, match="can't be read"):
        create_app(tmp_path / "none.entourage")
    with pytest.raises(UserError, match="not fitted"):
        create_app(MultinomialLogit())


def test_a_model_file_is_served_as_it_was_saved(tmp_path, chooser):
    path = tmp_path / "hotels.entourage"
    chooser.save(path)
    answer = ask(create_app(path, device="cpu"), "/v1/predict", hotel_body(5)).json()
    np.testing.assert_allclose(
        packed(answer["sets"], "scores"), load(path).predict_scores(hotels(5, seed=3)), atol=1e-5
    )
    assert answer["model"] == "hotels"


def test_an_empty_token_is_no_token(chooser):
    with pytest.raises(UserError, match="at least 16"):
        create_app(chooser, token="")
