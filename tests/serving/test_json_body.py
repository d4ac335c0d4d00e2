"""The JSON of a body: nothing is read that could mean two things."""

import pytest

from entourage.serving.json_body import read_json
from entourage.serving.refusal import Refusal


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (b'{"sets": [], "sets": [1]}', "sets"),
        (
            b'{"sets": [{"objects": [1]}, {"objects": [{"a": 1}, {"a": 1, "b": 2, "a": 1}]}]}',
            "sets[1].objects[1].a",
        ),
        (b'{"sets": [[{"x": {"y": null, "\\u0079": null}}]]}', "sets[0][0].x.y"),
        (b'[{"a": {"b": 1}}, {"a": {"b": 1}}, {"": 1, "": 1}]', "[2]."),
        (b'{"z": {"b": 1, "b": 2}, "a": {"c": 1, "c": 2}}', "z.b"),
    ],
)
def test_a_name_that_comes_twice_is_refused_with_its_place(body, path):
    with pytest.raises(Refusal, match="comes twice in the same object. Give each name once.") as caught:
        read_json(body)
    assert (caught.value.status, caught.value.path) == (422, path)


def test_a_long_name_and_a_deep_place_are_refused_without_an_echo_of_all_of_it():
    deep = b"[" * 900 + b'{"' + b"a" * 10_000 + b'": 1, "' + b"a" * 10_000 + b'": 2}' + b"]" * 900
    with pytest.raises(Refusal) as caught:
        read_json(deep)
    assert caught.value.path == "[0]" * 900 + "." + "a" * 60
    assert len(caught.value.message) < 200


def test_the_same_name_in_several_objects_is_right():
    assert read_json(b'{"a": [{"a": 1}, {"a": 2}]}') == {"a": [{"a": 1}, {"a": 2}]}
