"""A request is checked against the columns of the model, and means the same as a table."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from serving_cases import ROLES, hotels, sets_in_json

from entourage.data.encoder import TableEncoder
from entourage.serving.limits import Limits
from entourage.serving.refusal import Refusal
from entourage.serving.schema import ArraySchema, TableSchema


@pytest.fixture(scope="module")
def encoder():
    roles = {"set_id": ROLES["set_id"], "target": ROLES["target"], "situation": ROLES["situation"]}
    return TableEncoder.fit(hotels(), **roles, target_kind="choice")


@pytest.fixture(scope="module")
def schema(encoder):
    return TableSchema(encoder)


def good():
    one = {"price": 80.5, "stars": 3, "wifi": True, "brand": "a"}
    other = {"price": None, "stars": 4.5, "wifi": False, "brand": None}
    return {"sets": [{"objects": [one, other], "situation": {"nights": 2, "device": "web"}}]}


def refusal(schema, body, **limits):
    with pytest.raises(Refusal) as caught:
        schema.read(body, Limits(**limits))
    assert caught.value.status == 422
    return caught.value.path, caught.value.message


def test_a_request_means_what_the_same_table_means(encoder, schema):
    table = hotels(30, seed=1)
    request = schema.read({"sets": sets_in_json(table)}, Limits())
    ours, theirs = schema.sets_of([request]), encoder(table, with_target=False).sets
    np.testing.assert_array_equal(ours.objects, theirs.objects)
    np.testing.assert_array_equal(ours.situation, theirs.situation)
    np.testing.assert_array_equal(ours.offsets, theirs.offsets)


def test_requests_that_are_joined_mean_what_each_means_alone(schema):
    sets = sets_in_json(hotels(9, seed=2))
    parts = [schema.read({"sets": sets[i : i + 3]}, Limits()) for i in (0, 3, 6)]
    whole = schema.sets_of([schema.read({"sets": sets}, Limits())])
    np.testing.assert_array_equal(schema.sets_of(parts).objects, whole.objects)
    np.testing.assert_array_equal(schema.sets_of(parts).situation, whole.situation)


def test_the_example_of_a_model_is_a_request_it_takes(schema):
    request = schema.read({"sets": [schema.example()]}, Limits())
    assert schema.sets_of([request]).sizes.tolist() == [3]


@pytest.mark.parametrize(
    ("column", "value", "said"),
    [
        ("price", "80", "needs a number, or null where it is missing; got text"),
        ("price", True, "got true or false"),
        ("price", float("nan"), "got NaN"),
        ("price", float("inf"), "got an infinite number"),
        ("price", 10**400, "too large"),
        ("price", [1], "got a list"),
        ("price", {}, "got an object"),
        ("wifi", 2, "needs true or false"),
        ("wifi", "yes", "got text"),
        ("brand", 3, "needs text, or null where it is missing; got a number"),
        ("brand", "\ud800", "surrogate"),
    ],
)
def test_a_wrong_value_is_refused_with_its_place(schema, column, value, said):
    body = good()
    body["sets"][0]["objects"][1][column] = value
    path, message = refusal(schema, body)
    assert path == f"sets[0].objects[1].{column}"
    assert said in message
    assert repr(column) in message


def test_a_wrong_situation_is_refused_with_its_place(schema):
    body = good()
    body["sets"][0]["situation"]["nights"] = "two"
    assert refusal(schema, body)[0] == "sets[0].situation.nights"
    del body["sets"][0]["situation"]
    assert refusal(schema, body) == (
        "sets[0].situation.nights",
        "The situation lacks 'nights'. Give a value, or null where it is missing.",
    )


@pytest.mark.parametrize(
    ("body", "path", "said"),
    [
        ({}, "sets", "got nothing"),
        ({"sets": []}, "sets", "got an empty list"),
        ({"sets": {"objects": []}}, "sets", "got an object"),
        ({"sets": [3]}, "sets[0]", "got a number"),
        ({"sets": [{}]}, "sets[0].objects", "got nothing"),
        ({"sets": [{"objects": []}]}, "sets[0].objects", "this one is empty"),
        ({"sets": [{"objects": [[1, 2]]}]}, "sets[0].objects[0]", "needs its columns by name; got a list"),
        ({"sets": [{"object": []}]}, "sets[0]", "did you mean 'objects'?"),
    ],
)
def test_a_body_of_another_form_is_refused_with_its_place(schema, body, path, said):
    found, message = refusal(schema, body)
    assert found == path
    assert said in message


def test_unknown_and_lacking_columns_are_named(schema):
    body = good()
    body["sets"][0]["objects"][1]["prise"] = body["sets"][0]["objects"][1].pop("price")
    assert refusal(schema, body) == (
        "sets[0].objects[1]",
        "'prise' is not known here; did you mean 'price'? Known are 'brand', 'price', 'stars', 'wifi'.",
    )
    del body["sets"][0]["objects"][1]["prise"]
    assert refusal(schema, body)[0] == "sets[0].objects[1].price"


def test_a_column_in_the_place_of_another_kind_is_said_to_belong_elsewhere(schema):
    body = good()
    body["sets"][0]["objects"][1]["nights"] = body["sets"][0]["situation"].pop("nights")
    assert refusal(schema, body) == (
        "sets[0].objects[1].nights",
        "'nights' is a column of the situation, which is given once a set, beside objects.",
    )
    body = good()
    body["sets"][0]["situation"]["price"] = 3
    assert refusal(schema, body) == ("sets[0].situation.price", "'price' is a column of the objects.")


def test_sets_and_objects_are_limited(schema):
    body = good()
    assert "at most 1 objects; got 2" in refusal(schema, body, objects=1)[1]
    assert "at most 1 sets; got 2" in refusal(schema, {"sets": 2 * body["sets"]}, sets=1)[1]
    assert (
        "at most 3 objects in all; got 4" in refusal(schema, {"sets": 2 * body["sets"]}, total_objects=3)[1]
    )


def test_texts_that_stand_for_a_missing_value_do_so_in_a_request():
    table = pa.table(
        {"s": [0, 0, 1, 1], "x": ["1", "---", "2", "3"], "t": ["a", "---", "b", "7"], "y": [1, 0, 0, 1]}
    )
    encoder = TableEncoder.fit(table, set_id="s", target="y", target_kind="choice", missing=["---"])
    schema = TableSchema(encoder)
    rows = [{"x": 1, "t": "a"}, {"x": "---", "t": "---"}], [{"x": 2, "t": "b"}, {"x": 3, "t": "7"}]
    request = schema.read({"sets": [{"objects": one} for one in rows]}, Limits())
    np.testing.assert_array_equal(schema.sets_of([request]).objects, encoder(table).sets.objects)
    # texts that look like numbers stay text, whatever else is in the same batch
    alone = schema.read({"sets": [{"objects": [{"x": 3, "t": "7"}, {"x": None, "t": "---"}]}]}, Limits())
    np.testing.assert_array_equal(schema.sets_of([alone]).objects[0], encoder(table).sets.objects[3])


def test_whole_numbers_beyond_double_precision_are_rounded_like_those_of_a_table():
    schema = TableSchema(
        TableEncoder.fit(pa.table({"s": [0, 0], "x": [1, 2], "y": [1, 0]}), set_id="s", target="y")
    )
    request = schema.read({"sets": [{"objects": [{"x": 2**60 + 1}, {"x": -(10**300)}]}]}, Limits())
    assert schema.sets_of([request]).objects.ravel().tolist() == [float(2**60), -1e300]


def test_arrays_are_lists_of_numbers():
    schema = ArraySchema(2, 1)
    body = {"sets": [{"objects": [[1, 2], [3, 4.5]], "situation": [7]}]}
    sets = schema.sets_of([schema.read(body, Limits())] * 2)
    assert sets.objects.tolist() == [[1, 2], [3, 4.5]] * 2
    assert sets.situation.tolist() == [[7], [7]]
    for objects, path, said in [
        ([[1, 2], [3]], "sets[0].objects[1]", "a list of 2 numbers; got 1"),
        ([[1, 2], {"x": 1}], "sets[0].objects[1]", "got an object"),
        ([[1, 2], [3, None]], "sets[0].objects[1][1]", "got null"),
        ([[1, 2], [True, 3]], "sets[0].objects[1][0]", "got true or false"),
        ([[1, 2], ["3", 3]], "sets[0].objects[1][0]", "got text"),
        ([[1, 2], [3, float("nan")]], "sets[0].objects[1][1]", "got NaN"),
    ]:
        found, message = refusal(schema, {"sets": [{"objects": objects, "situation": [7]}]})
        assert found == path
        assert said in message
    assert refusal(schema, {"sets": [{"objects": [[1, 2]]}]})[0] == "sets[0].situation"
    assert "has no situation" in refusal(ArraySchema(2), body)[1]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["objects", "price", "x"]), inner)
    ),
    max_leaves=8,
)


PLAIN = TableSchema(
    TableEncoder.fit(pa.table({"s": [0, 0], "x": [1, 2], "y": [1, 0]}), set_id="s", target="y")
)


@settings(max_examples=50, deadline=None)
@given(JSON)
def test_anything_else_is_refused_and_never_fails(sets):
    try:
        PLAIN.sets_of([PLAIN.read({"sets": sets}, Limits())])
    except Refusal as caught:
        said = caught
    else:
        return
    assert said.status == 422
    assert said.path is not None
