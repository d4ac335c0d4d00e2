"""
Shoppers and decoys
===================

Shoppers choose one of three products by quality and economy, and are drawn to a product that is better than another
in both. A logit model, which gives each product a utility of its own, can't represent that; FETA can. We test the
choices for context dependence, and search for the best decoy.
"""

import numpy as np

from entourage import FETA, DiscreteChooser
from entourage.choice import MultinomialLogit
from entourage.effects import best_decoy, context_test, effects_report, natural_effects
from entourage.effects.plots import draw_context_test, draw_decoys

rng = np.random.default_rng(0)


def make_choices(n):
    quality = rng.random((n, 3, 1))
    offers = np.concatenate([quality, 1 - quality + 0.25 * rng.normal(size=(n, 3, 1))], axis=2)  # and economy
    better = (offers[:, :, None] > offers[:, None]).all(3)  # (n, i, j): i is better than j in both
    near = np.exp(-3 * np.abs(offers[:, :, None] - offers[:, None]).sum(3))
    utilities = 3 * offers.sum(2) + 3 * (better * near).sum(2)
    return offers, (utilities + rng.gumbel(size=(n, 3))).argmax(1)


X, y = make_choices(4_000)
X_test, y_test = make_choices(2_000)

# %%
# Without any net: do choices depend on the rest of the choice set? The null model is a logit of each product's own
# utility. The score statistic of the choices is compared with that of choices simulated from the null.

found = context_test(X, y, draws=39)
print(f"score statistic {found.statistic:.1f} on {found.degrees} degrees of freedom, p = {found.p_value:.2f}")
picture = draw_context_test(found)

# %%
# The gain by context: the mean log-likelihood of held-out choices.

logit = MultinomialLogit().fit(X, y)
print(logit.summary(["quality", "economy"]))
feta = DiscreteChooser(FETA(width=32), steps=600, random_state=0).fit(X, y)
print(f"\nlogit {logit.log_likelihood(X_test, y_test):.3f}, FETA {feta.log_likelihood(X_test, y_test):.3f}")

# %%
# What the net has learnt: the preference-reversal rate when one product is removed, and the attraction effect among
# the products of each choice set, with its interval over sets.

report = effects_report(feta, X_test[:500], draws=0)
print(f"preference-reversal rate: {report.reversal_rate.value:.3f}")
effect = natural_effects(feta, X_test, names=["quality", "economy"]).effects["attraction"]
low, high = effect.shift.interval()
print(f"attraction: {effect.shift.value:+.2f} [{low:+.2f}, {high:+.2f}]")

# %%
# Where should a third product stand to help A against B? Where A is better in both, and B is not. In this simulated
# world the best place is just below A. The net looks for it at the border, where there are few products: there it
# extrapolates, as any search of a model does. And it has seen no sets of two, so read where the shift is larger, not
# how large it is.

a, b = [0.3, 0.7], [0.7, 0.3]
decoy = best_decoy(feta, a, b, bounds=[[0, 0], [1, 1]])
print("best decoy:", decoy.features.round(2), "shifts the log-odds of A against B by", round(decoy.shift, 2))
where = draw_decoys(feta, a, b, [[0, 0], [1, 1]], names=("quality", "economy"))
