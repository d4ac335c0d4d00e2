"""The instant verdict in words and as plain data."""

import json

from entourage.pretrained import InstantVerdict

FOUND = InstantVerdict(0.25, 0.4, (0.1, 0.75), {"attraction": 0.9, "similarity": 0.001})


def test_the_words_name_probability_share_interval_and_effects():
    assert str(FOUND) == (
        "Instant verdict: context plays a part with a probability of 75 %. Its share of the log-likelihood gain is "
        "40 %, 90 % interval 10 % to 75 %. Probability of attraction 90 %, similarity < 1 %."
    )


def test_plain_data_has_all_fields():
    assert json.loads(json.dumps(FOUND.to_json())) == {
        "none": 0.25,
        "share": 0.4,
        "interval": [0.1, 0.75],
        "effects": {"attraction": 0.9, "similarity": 0.001},
    }
