"""Whatever comes is answered: no failure of the server, nothing told of it, and right requests still answered right."""

import asyncio
import copy
import json

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from serving_cases import HOST, hotel_chooser, hotels, refused, sets_in_json

from entourage.serving import Limits, create_app

STATUSES = {200, 401, 404, 405, 413, 415, 422, 429}
ROUTES = ["/v1/predict", "/v1/influence", "/v1/whatif", "/v1/models/model/predict", "/v1/models/x/whatif"]
GOOD = {"sets": sets_in_json(hotels(2, seed=1)), "change": "price *= 1.1"}

leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(10**300, 10**400),
    st.floats(),
    st.sampled_from(["price", "", "a", "\ud800", "\x00", "1e5", "NaN", "../../etc/passwd", "x" * 300]),
    st.text(max_size=5),
)
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["sets", "objects", "situation", "price", "model", "add"]), inner, max_size=3
        )
    ),
    max_leaves=10,
)


@st.composite
def spoilt(draw):
    """A right body with one part of it replaced, left out, or joined by another."""
    body = copy.deepcopy(GOOD)
    place = body
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = draw(st.sampled_from(keys))
        inner = place[key]
        if not isinstance(inner, dict | list) or not inner or draw(st.integers(0, 2)) == 0:
            break
        place = inner
    what = draw(st.sampled_from(["replace", "leave out", "join"]))
    if what == "replace":
        place[key] = draw(values)
    elif what == "leave out":
        del place[key]
    elif isinstance(place, dict):
        place[draw(st.text(max_size=5))] = draw(values)
    else:
        place.append(draw(values))
    return json.dumps(body).encode("utf-8", "surrogatepass")


def cut(text):
    return st.integers(0, len(text)).map(lambda end: text[:end])


whole = json.dumps(GOOD).encode()
bodies = st.one_of(
    spoilt(),
    spoilt(),
    spoilt(),
    st.binary(max_size=60),
    cut(whole),
    values.map(lambda one: json.dumps(one).encode()),
)


@pytest.fixture(scope="module")
def served():
    """An app, a loop that asks it, and what it answers to a right request."""
    app = create_app(hotel_chooser(), limits=Limits(body=20_000))
    loop = asyncio.new_event_loop()
    client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=HOST)

    def ask(path, body):
        sent = client.post(path, content=body, headers={"content-type": "application/json"})
        return loop.run_until_complete(asyncio.wait_for(sent, 20))

    right = {"sets": GOOD["sets"]}
    yield ask, json.dumps(right).encode(), ask("/v1/predict", json.dumps(right).encode()).json()
    loop.run_until_complete(client.aclose())
    loop.close()


def check(served, path, body):
    ask, right, expected = served
    answer = ask(path, body)
    assert answer.status_code in STATUSES, (answer.status_code, answer.text)
    if answer.status_code != 200:
        assert len(refused(answer)[0]) > 10
    return ask, right, expected


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(path=st.sampled_from(ROUTES), body=bodies)
def test_malformed_bodies_are_refused_with_a_sentence(served, path, body):
    check(served, path, body)


@pytest.mark.heavy
@settings(max_examples=2000, deadline=None, suppress_health_check=list(HealthCheck))
@given(path=st.sampled_from(ROUTES), body=bodies)
def test_two_thousand_malformed_bodies_change_no_right_answer(served, path, body):
    ask, right, expected = check(served, path, body)
    if len(body) % 20 == 0:
        assert ask("/v1/predict", right).json() == expected


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")
def test_what_the_pages_say_is_what_is_answered():
    """Schemathesis makes requests from the OpenAPI document, right and wrong ones, and checks the answers by it."""
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.specs.openapi.checks import (
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )

    app = create_app(hotel_chooser(), limits=Limits(body=200_000))
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    checks = (
        not_a_server_error,
        content_type_conformance,
        response_schema_conformance,
        status_code_conformance,
    )
    asked = []

    for operation in schema.get_all_operations():
        one = operation.ok()

        @settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        @given(case=one.as_strategy())
        def run(case):
            asked.append(case)
            case.call_and_validate(checks=checks)

        run()
    assert {case.path for case in asked} == set(app.openapi()["paths"])
    assert len(asked) > 50
