"""
A preference reversal
=====================

Points are ranked by their distance to the medoid of their set. We train a context-free net and FATE on sets of five,
then fix two points A and B and move another one over the plane: its position decides which of the two is ranked
first. The context-free net can't represent that.
"""

import matplotlib.pyplot as plt
import numpy as np

from entourage import FATE, ContextFree, Ranker
from entourage.data import make_medoid
from entourage.data.synthetic.medoid import medoid_distances

X, ranks = make_medoid(n_sets=4_000, random_state=0)
context_free = Ranker(ContextFree(width=32), steps=250, random_state=0).fit(X, ranks)
fate = Ranker(FATE(width=64), steps=600, random_state=0).fit(X, ranks)

X_test, ranks_test = make_medoid(n_sets=2_000, random_state=1)
print(f"0/1-ranking accuracy: context-free {context_free.score(X_test, ranks_test):.3f}, ", end="")
print(f"FATE {fate.score(X_test, ranks_test):.3f}")

# %%
# Two fixed points, two bystanders, and a fifth on a grid over the plane: 900 sets that differ in one point.

A, B = [0.35, 0.5], [0.65, 0.5]
bystanders = [[0.4, 0.9], [0.75, 0.15]]
grid = np.stack(np.meshgrid(np.linspace(0, 1, 30), np.linspace(0, 1, 30)), axis=-1).reshape(-1, 1, 2)
fixed = np.broadcast_to([A, B, *bystanders], (len(grid), 4, 2))
sets = np.concatenate([fixed, grid], axis=1)  # (900, 5, 2)


def a_is_ahead(scores):
    return (scores[:, 0] > scores[:, 1]).reshape(30, 30)


panels = {
    "truth": a_is_ahead(-medoid_distances(sets)),
    "context-free": a_is_ahead(context_free.predict_scores(sets)),
    "FATE": a_is_ahead(fate.predict_scores(sets)),
}

figure, axes = plt.subplots(1, 3, figsize=(9, 3.3), layout="constrained", sharey=True)
for axis, (name, ahead) in zip(axes, panels.items(), strict=True):
    axis.imshow(ahead, origin="lower", extent=(0, 1, 0, 1), cmap="coolwarm", vmin=-0.6, vmax=1.6)
    axis.scatter(*np.transpose(bystanders), color="0.35", s=30)
    for label, point, color in [("A", A, "#b3261e"), ("B", B, "#1f5fbf")]:
        axis.scatter(*point, color=color, s=60)
        axis.annotate(label, point, xytext=(0, 8), textcoords="offset points", ha="center", fontweight="bold")
    agreement = (ahead == panels["truth"]).mean()
    axis.set_title(name if name == "truth" else f"{name}: {agreement:.0%} of the plane right", fontsize=11)
    axis.set_xticks([])
    axis.set_yticks([])
figure.suptitle("Where the fifth point makes A (red) or B (blue) come first", x=0.01, ha="left")
plt.show()
