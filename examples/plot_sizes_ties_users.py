"""
Sets of many sizes, ties, and features of the user
==================================================

Real sets differ in size, tie, and leave objects unranked; and the same objects are ranked differently by
different users. Here are hotels with a price and a rating. Some guests prefer a low price, others a
high rating, and all of them dislike the dearest hotel on offer, whatever it costs.
"""

import matplotlib.pyplot as plt
import numpy as np

from entourage import FATE, ContextFree, Ranker
from entourage.data import Sets

rng = np.random.default_rng(0)


def make_searches(n):
    hotels, ranks, guests = [], [], []
    for size in rng.integers(3, 9, size=n):
        offer = rng.random((size, 2))  # price, rating
        thrift = rng.random()
        utility = (1 - thrift) * offer[:, 1] - thrift * offer[:, 0]
        utility[offer[:, 0].argmax()] -= 0.5  # the dearest of this very set
        order = np.argsort(np.argsort(-utility)).astype(float)
        order[order >= 3] = 3  # the guest names a top three; the rest tie behind it
        hotels.append(offer)
        ranks.append(order)
        guests.append([thrift])
    return Sets.from_list(hotels, ranks, guests)


train, test = make_searches(3_000), make_searches(1_000)
print(train)

# %%
# ``Sets`` carry ranks and situation with them, so ``fit`` needs nothing else.

scores = {}
for name, net in [("context-free", ContextFree(width=32)), ("FATE", FATE(width=32))]:
    for who, sets in [("guest known", (train, test)), ("guest unknown", None)]:
        if sets is None:
            sets = [Sets(s.objects, s.offsets, s.targets) for s in (train, test)]  # without the situation
        model = Ranker(net, steps=300, random_state=0).fit(sets[0])
        scores[f"{name}, {who}"] = model.score(sets[1])
for name, score in scores.items():
    print(f"{name:28} {score:.3f}")

# %%
# Features of the guest improve predictions, and so does context: which hotel is the dearest of the search.

figure, axis = plt.subplots(figsize=(7, 2.6), layout="constrained")
names = list(scores)
axis.barh(names, scores.values(), color=["#1f5fbf" if "FATE" in name else "#8a94a3" for name in names])
axis.set_xlim(0.5, 1)
axis.set_xlabel("0/1-ranking accuracy on fresh searches")
axis.invert_yaxis()
axis.spines[["top", "right"]].set_visible(False)
plt.show()
