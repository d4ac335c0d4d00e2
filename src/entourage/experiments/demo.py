"""The demonstration: four nets on the medoid task, and a preference reversal."""

import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from entourage import __version__
from entourage.data.ranks import ranks_from_scores
from entourage.data.sets import Sets
from entourage.data.synthetic.medoid import make_medoid, medoid_distances
from entourage.errors import ParameterError
from entourage.estimators import Ranker
from entourage.experiments.paper import read_claims
from entourage.nets import FATE, FETA, ContextFree, Net, SetAttention
from entourage.report.page import Cell, Live, Section, Table, make_folder, write_report
from entourage.tasks.evaluate import evaluate_scores
from entourage.tasks.ranking_metrics import METRICS

__all__ = ["METRIC_NAMES", "SHOWN", "Result", "Reversal", "find_reversal", "reversals_in_words", "run_demo"]

METRIC_NAMES = {
    "spearman": "Spearman",
    "ranking_accuracy": "ranking accuracy",
    "zero_one_accuracy": "0/1 accuracy",
}
NETS: list[
    tuple[str, str | None, Net, str]
] = [  # what it is, its row in the paper's table, the net, its loss
    ("context-free", "RankNet", ContextFree(), "logistic"),
    ("FETA", "FETA-Net", FETA(), "hinge"),
    ("FATE", "FATE-Net", FATE(), "hinge"),
    ("SetAttention", None, SetAttention(), "hinge"),
]
SHOWN = "FATE"  # the net whose preference reversal is drawn
# A step of SetAttention takes longer and teaches more: accuracy on held-out sets is 0.966 after 250, 0.972 after 500
# and 0.974 after 750; FATE's is 0.903 after 1,000
FEWER_STEPS = {"SetAttention": 8}


@dataclass
class Result:
    """A trained model and its metrics on fresh sets, beside those published."""

    name: str
    row: str | None
    model: Ranker
    seconds: float
    ours: dict[str, float]
    published: dict[str, float]  # empty where the paper has no such net

    @property
    def steps(self) -> int:
        """Training steps that were taken, before training stopped early or ended."""
        return max(int(row["step"]) for row in self.model.history_)

    def paper(self, metric: str) -> str:
        """Return the paper's figure, or a dash."""
        return f"{self.published[metric]:.3f}" if metric in self.published else "–"


@dataclass
class Reversal:
    """A set in which adding one object reverses a preference, in truth and as the model predicts."""

    points: NDArray[np.float32]  # (5, 2); the last is the added one
    a: int
    b: int
    before: NDArray[np.int64]  # the model's ranks of the first four
    after: NDArray[np.int64]  # and of all five
    true_share: float  # the share of pairs whose true order is reversed when an object is added
    found: dict[str, float]  # the share of these that each model predicts


def run_demo(
    folder: Path,
    *,
    n_train: int = 10_000,
    n_test: int = 20_000,
    steps: int | None = None,
    seed: int = 0,
    verbose: bool = True,
    announce: Callable[[str], None] = lambda text: None,
    explorer: Callable[[list[Result], Reversal], Live] | None = None,
) -> tuple[list[Result], Reversal]:
    """Train, evaluate on fresh sets, search for a preference reversal, and write pictures and a report.

    Of ``steps``, SetAttention takes an eighth. ``explorer`` is told the results, and returns what the report says of a
    page in which the nets run.
    """
    make_folder(folder)
    train_seed, test_seed, search_seed = np.random.SeedSequence(seed).spawn(3)
    train, test, search = (np.random.default_rng(s) for s in (train_seed, test_seed, search_seed))
    X, ranks = make_medoid(n_train, random_state=train)
    X_test, ranks_test = make_medoid(n_test, random_state=test)
    claims = read_claims("table1")["tasks"]["medoid"]["published"]
    results = []
    for name, row, net, loss in NETS:
        announce(name)
        model = Ranker(net, loss=loss, random_state=seed, verbose=verbose)
        model.set_params(steps=max(1, (model.steps if steps is None else steps) // FEWER_STEPS.get(name, 1)))
        start = time.perf_counter()
        model.fit(X, ranks)
        seconds = time.perf_counter() - start
        test_sets = Sets.of(X_test, ranks_test)
        scores = model.predict_scores(test_sets)
        results.append(
            Result(
                name=name,
                row=row,
                model=model,
                seconds=seconds,
                ours=evaluate_scores(test_sets, scores, {name: METRICS[name] for name in METRIC_NAMES}),
                published={} if row is None else {m: claims[m][row]["mean"] for m in METRIC_NAMES},
            )
        )
    reversal = find_reversal({r.name: r.model for r in results}, n_test, search, shown=SHOWN)
    live = None if explorer is None else explorer(results, reversal)
    _write(folder, results, reversal, n_train, n_test, seed, live)
    return results, reversal


def find_reversal(
    models: dict[str, Ranker], n_sets: int, rng: np.random.Generator, *, shown: str
) -> Reversal:
    """Add a fifth point to sets of four and find the pairs that are reversed: in truth, and for each model.

    The case that is returned is one of the model ``shown``.
    """
    X = make_medoid(n_sets, random_state=rng)[0]
    pairs = [(a, b) for a in range(4) for b in range(a + 1, 4)]
    left, right = np.array(pairs).T

    def gaps(scores: NDArray[Any]) -> NDArray[Any]:
        gap: NDArray[Any] = scores[:, left] - scores[:, right]  # (n, 6): above 0 where a is before b
        return gap

    truth = [gaps(-medoid_distances(X[:, :4])), gaps(-medoid_distances(X)[:, :4])]
    is_reversed = (truth[0] * truth[1]) < 0  # (n, 6)
    found, best = {}, None
    for name, model in models.items():
        four, five = model.predict_scores(X[:, :4]), model.predict_scores(X)
        guess = [gaps(four), gaps(five[:, :4])]
        agrees = is_reversed & ((guess[0] * truth[0]) > 0) & ((guess[1] * truth[1]) > 0)
        found[name] = float(agrees.sum() / is_reversed.sum())
        if name == shown:
            best = (four, five, guess, agrees)
    if best is None:
        raise ParameterError(f"shown is one of the models, {', '.join(models)}; got {shown!r}.")
    four, five, guess, agrees = best
    # Show the case in which the model is surest and both of its rankings are right throughout.
    before, after = ranks_from_scores(four), ranks_from_scores(five)
    right_before = (before == ranks_from_scores(-medoid_distances(X[:, :4]))).all(1)
    right_after = (after == ranks_from_scores(-medoid_distances(X))).all(1)
    sure = np.minimum(np.abs(guess[0]), np.abs(guess[1]))
    sure = np.where(agrees, sure + 1e3 * (right_before & right_after)[:, None], -1.0)
    i, pair = np.unravel_index(int(sure.argmax()), sure.shape)
    a, b = pairs[int(pair)]
    if before[i, a] > before[i, b]:
        a, b = b, a
    return Reversal(X[i], a, b, before[i], after[i], float(is_reversed.mean()), found)


def reversals_in_words(reversal: Reversal) -> str:
    """Say how many pairs are reversed when a point is added, and how many of these each model predicts."""
    shares = ", ".join(f"{name} {share:.1%}" for name, share in reversal.found.items())
    return (
        f"Adding a fifth point reverses {reversal.true_share:.1%} of the true preferences between the others. "
        f"Of these preference reversals, each net predicts: {shares}."
    )


def _write(
    folder: Path,
    results: list[Result],
    reversal: Reversal,
    n_train: int,
    n_test: int,
    seed: int,
    live: Live | None,
) -> None:
    _draw_reversal(folder / "reversal.png", reversal)
    _draw_curves(folder / "curves.png", results)
    best = {metric: max(r.ours[metric] for r in results) for metric in METRIC_NAMES}
    rows: list[list[Cell]] = []
    for r in results:
        row: list[Cell] = [r.name]
        for metric in METRIC_NAMES:
            ours = f"{r.ours[metric]:.3f}"
            row += [(ours, "best") if r.ours[metric] == best[metric] else ours, r.paper(metric)]
        rows.append([*row, f"{r.steps:,}", f"{r.seconds:.0f} s"])
    header = ["net"] + [c for name in METRIC_NAMES.values() for c in (name, "paper")] + ["steps", "training"]
    device = next(results[0].model.scorer_.parameters()).device.type
    settings: list[list[Cell]] = [[r.name, (" ".join(repr(r.model).split()), "text")] for r in results]
    settings += [
        ["seed", (str(seed), "text")],
        ["entourage", (__version__, "text")],
        ["torch, Python", (f"{torch.__version__}, {platform.python_version()}", "text")],
        ["machine", (f"{platform.machine()}, {torch.get_num_threads()} threads, {device}", "text")],
    ]
    write_report(
        folder / "report.html",
        "Ranking in company: the medoid task",
        "Points are ranked by their distance to the medoid of their set, so the right order of two depends "
        f"on all the others. Trained on {n_train:,} sets of 5 points, evaluated on {n_test:,} fresh ones.",
        [
            Section("What each net learns", table=Table(header, rows)),
            Section(
                "A preference reversal",
                f"{reversals_in_words(reversal)} A context-free net can't predict any. Below, a case in which {SHOWN} "
                "is sure and right.",
                pictures=[
                    (
                        folder / "reversal.png",
                        f"One set, ranked by {SHOWN}: adding the star reverses A before B to B before A.",
                    )
                ],
            ),
            Section(
                "Learning curves",
                pictures=[
                    (folder / "curves.png", "0/1-ranking accuracy on sets held out for early stopping.")
                ],
            ),
            Section("Settings", table=Table(["what", "value"], settings)),
        ],
        headline=_headline(results),
        live=live,
    )


def _headline(results: list[Result]) -> str:
    """Say what seeing the other points is worth."""
    by_name = {r.name: r.ours["ranking_accuracy"] for r in results}
    alone, shown = by_name["context-free"], by_name[SHOWN]
    return (
        f"Of 100 pairs, a net that sees each point alone orders {100 * alone:.0f} rightly; {SHOWN}, which sees the "
        f"others, {100 * shown:.0f}."
    )


def _draw_reversal(path: Path, reversal: Reversal) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.6), dpi=150, layout="constrained")
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    ink = {reversal.a: "#b3261e", reversal.b: "#1f5fbf"}
    names = {reversal.a: "A", reversal.b: "B"}
    panels = [
        (axes[0], 4, reversal.before, "Four points: A before B"),
        (axes[1], 5, reversal.after, "One more point: B before A"),
    ]
    for axis, size, ranks, title in panels:
        for i in range(size):
            x, y = reversal.points[i]
            color = ink.get(i, "#8a94a3")
            axis.scatter(x, y, s=420 if i == 4 else 170, marker="*" if i == 4 else "o", color=color, zorder=2)
            label = f"{names[i]}: {ranks[i] + 1}" if i in names else f"{ranks[i] + 1}"
            axis.annotate(
                label,
                (x, y),
                xytext=(0, 13),
                textcoords="offset points",
                ha="center",
                color=color if i in names else "#3a4350",
                fontweight="bold" if i in names else "normal",
                fontsize=12,
            )
        axis.set_title(title, loc="left", fontsize=13)
        axis.set_aspect("equal")
        axis.set_xlim(-0.08, 1.08)
        axis.set_ylim(-0.08, 1.12)
        axis.set_xticks([])
        axis.set_yticks([])
        for side in axis.spines.values():
            side.set_color("#d9dee5")
    figure.savefig(path)


def _draw_curves(path: Path, results: list[Result]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 3.6), dpi=150, layout="constrained")
    axis = figure.subplots()
    for result, color in zip(results, ["#8a94a3", "#1f5fbf", "#b3261e", "#0b6e4f"], strict=True):
        history = [row for row in result.model.history_ if "score" in row]
        if not history:
            continue
        steps, scores = [row["step"] for row in history], [row["score"] for row in history]
        axis.plot(steps, scores, color=color, linewidth=2)
        axis.annotate(
            result.name,
            (steps[-1], scores[-1]),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=color,
        )
    axis.set_xlabel("training steps")
    axis.set_ylabel("0/1-ranking accuracy")
    axis.margins(x=0.16)
    axis.spines[["top", "right"]].set_visible(False)
    figure.savefig(path)
