import numpy as np

from entourage.report.reliability import reliability_picture


def test_the_picture_shows_each_bin_with_its_interval_and_the_counts(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(6), size=300)
    figure = reliability_picture(p, rng.multinomial(1, p[0], size=300), outcome="first")
    above, below = figure.axes
    assert len(above.lines) == 11  # the diagonal, and ten intervals
    assert above.get_ylabel() == "share first"
    assert sum(patch.get_height() for patch in below.patches) == 1800
    figure.savefig(tmp_path / "r.png")
    assert (tmp_path / "r.png").stat().st_size > 5000


def test_one_probability_for_all_is_one_bin():
    above, _ = reliability_picture([0.25] * 8, [1, 1] + [0] * 6).axes
    assert "1 bin of 8 objects" in above.get_title()
