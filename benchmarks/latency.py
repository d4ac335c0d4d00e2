"""Latency of one prediction beside onnxruntime's, in one run: ``python -m benchmarks.latency``.

One set of 20 objects with 10 features, one thread each, called in turns. The ratio is that of the shortest times, since
other work on the machine can only add to them; medians are beside it. Rows in ``results/latency.json``.
"""

import argparse
import json
import platform
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from threadpoolctl import threadpool_limits

from entourage import FATE, FETA, ContextFree, DiscreteChooser, Ranker, SetAttention, __version__
from entourage.baselines import LinearRanker
from entourage.data import Sets, make_medoid
from entourage.estimators.blend import Blend, Part

try:
    import onnxruntime
except ImportError as error:
    raise SystemExit("This benchmark needs onnxruntime: pip install 'entourage[onnx]'.") from error

RESULTS = Path(__file__).parent / "results"
OBJECTS, FEATURES = 20, 10
WARM_UP = 50  # calls
SETTINGS = {
    "steps": 20,
    "batch_size": 32,
    "random_state": 0,
    "device": "cpu",
}  # trained weights or not: as quick
MODELS = {
    "ContextFree()": Ranker(ContextFree(), **SETTINGS),
    "FATE()": Ranker(FATE(), **SETTINGS),
    "FETA()": Ranker(FETA(), **SETTINGS),
    "SetAttention(features='linear', rounds=3)": Ranker(
        SetAttention(rounds=3, features="linear"), **SETTINGS
    ),
    "FATE(), members=3": Ranker(FATE(), members=3, **SETTINGS),
    "SetAttention(features='linear', rounds=3), members=3": Ranker(
        SetAttention(rounds=3, features="linear"), members=3, **SETTINGS
    ),
}


def times_in_turns(calls: int, *functions: Callable[[], object]) -> list[dict[str, float]]:
    """Return the least and the median milliseconds of each, called in turns."""
    times: list[list[float]] = [[] for _ in functions]
    for call in range(calls + WARM_UP):
        for function, own in zip(functions, times, strict=True):
            start = time.perf_counter()
            function()
            if call >= WARM_UP:
                own.append(1e3 * (time.perf_counter() - start))
    return [{"least": round(min(own), 4), "p50": round(statistics.median(own), 4)} for own in times]


def beside_onnxruntime(model: Ranker, x: np.ndarray, calls: int) -> dict:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        model.to_onnx(path)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feeds = {"objects": x, "mask": np.ones(x.shape[:2], dtype=bool)}
    difference = float(np.abs(session.run(["scores"], feeds)[0] - model.predict_scores(x)).max())
    ours, theirs = times_in_turns(
        calls, lambda: model.predict_scores(x), lambda: session.run(["scores"], feeds)
    )
    ratios = {f"ratio_{what}": round(ours[what] / theirs[what], 2) for what in ours}
    return {"ours_ms": ours, "onnxruntime_ms": theirs, "difference": difference} | ratios


def other_calls(X: np.ndarray, ranks: np.ndarray) -> dict[str, Callable[[], object]]:
    """Return calls without a counterpart: tables, lists, probabilities, a blend."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"set": np.repeat(np.arange(len(X)), X.shape[1]), "place": ranks.ravel()})
    frame = frame.assign(**{f"x{i}": X[..., i].ravel() for i in range(4)})
    frame["team"] = rng.choice(list("abcdefgh"), len(frame))
    frame["name"] = rng.choice([f"n{i}" for i in range(50)], len(frame))
    of_table = Ranker(FATE(), **SETTINGS).fit(frame, set_id="set", target="place")
    fate = Ranker(FATE(), **SETTINGS).fit(X, ranks)
    chooser = DiscreteChooser(FATE(), **SETTINGS).fit(X, ranks.argmin(1))
    linear = LinearRanker().fit(X, ranks)
    blend = Blend(
        fate.task, [Part("nets", 0.5, [fate, fate], [1.0, 1.0]), Part("linear", 0.5, [linear], [1.0])]
    )
    one, rows = X[:1], frame[: X.shape[1]].drop(columns="place")
    sets, packed = [*X[:100]], Sets.of(one)
    return {
        "predict of a pandas frame, 1 set": lambda: of_table.predict(rows),
        "predict of an array, 1 set": lambda: fate.predict(one),
        "predict_scores of a list, 100 sets": lambda: fate.predict_scores(sets),
        "predict_proba of a chooser, 1 set": lambda: chooser.predict_proba(one),
        "scores of a blend of two FATE and a linear model, 1 set": lambda: blend.scores(packed, "cpu"),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--out", type=Path, default=RESULTS / "latency.json")
    args = parser.parse_args()
    torch.set_num_threads(1)
    X, ranks = make_medoid(n_sets=200, n_objects=OBJECTS, n_features=FEATURES, random_state=0)
    X = X.astype(np.float64)
    rows = []
    with threadpool_limits(1):
        for name, model in MODELS.items():
            rows.append({"model": name} | beside_onnxruntime(model.fit(X, ranks), X[:1], args.calls))
            print(json.dumps(rows[-1]), flush=True)
        for name, call in other_calls(X, ranks).items():
            rows.append({"call": name, "ours_ms": times_in_turns(max(args.calls // 5, 50), call)[0]})
            print(json.dumps(rows[-1]), flush=True)
    about = {
        "machine": f"{platform.machine()}, one thread",
        "entourage": __version__,
        "torch": torch.__version__,
        "onnxruntime": onnxruntime.__version__,
    }
    args.out.write_text(json.dumps(about | {"rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
