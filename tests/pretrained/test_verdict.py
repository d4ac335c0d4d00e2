"""STUB: the instant verdict in words."""

from entourage.pretrained import InstantVerdict


def test_the_words_name_the_probability_that_there_is_no_context():
    assert "no context with probability 0.70" in str(
        InstantVerdict(0.7, 0.02, (0.0, 0.1), {"attraction": 0.1})
    )
