"""One set of 20 objects through onnxruntime and through ``predict_scores``: ``python -m benchmarks.onnx``."""

import argparse
import json
import platform
import tempfile
import time
from pathlib import Path

import numpy as np
import onnxruntime
import torch

from entourage import FATE, Ranker, SetAttention, __version__
from entourage.data import make_medoid

RESULTS = Path(__file__).parent / "results"
OBJECTS, FEATURES = 20, 10
TURN = 100  # calls of one way before the other has its turn
MODELS = {
    "FATE()": lambda **settings: Ranker(FATE(), **settings),
    "SetAttention(features='linear', rounds=3)": lambda **settings: Ranker(
        SetAttention(rounds=3, features="linear"), **settings
    ),
    "FATE(), members=3": lambda **settings: Ranker(FATE(), members=3, **settings),
}


def percentiles(seconds: list[float]) -> dict[str, float]:
    """Return the median and the 99th percentile, in milliseconds."""
    return {f"p{q}": round(1e3 * float(np.percentile(seconds, q)), 3) for q in (50, 99)}


def measure(model, x, calls: int) -> dict:
    """Time both in turns, on one thread each."""
    with tempfile.TemporaryDirectory() as folder:
        begin = time.perf_counter()
        written = model.to_onnx(Path(folder) / "model.onnx")
        took = time.perf_counter() - begin
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = onnxruntime.InferenceSession(written.file, options, providers=["CPUExecutionProvider"])
    feeds = {"objects": x, "mask": np.ones(x.shape[:2], dtype=bool)}
    ways = {
        "onnx": lambda: session.run(["scores"], feeds)[0],
        "predict_scores": lambda: model.predict_scores(x),
    }
    difference = float(np.abs(ways["onnx"]() - ways["predict_scores"]()).max())
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(1 + calls // TURN):  # in turns, so that both see the same machine; the first warms up
        for name, score in ways.items():
            for _ in range(TURN):
                start = time.perf_counter()
                score()
                if turn:
                    times[name].append(time.perf_counter() - start)
    found = {name: percentiles(own) for name, own in times.items()}
    return found | {
        "difference": difference,
        "deviation": written.deviation,
        "bytes": written.size,
        "export_s": round(took, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--out", type=Path, default=RESULTS / "onnx.json")
    args = parser.parse_args()
    torch.set_num_threads(1)
    X, ranks = make_medoid(n_sets=1000, n_objects=5, n_features=FEATURES, random_state=0)
    x = make_medoid(n_sets=1, n_objects=OBJECTS, n_features=FEATURES, random_state=1)[0].astype(np.float64)
    rows = []
    for name, make in MODELS.items():
        model = make(steps=args.steps, device="cpu", random_state=0).fit(X, ranks)
        rows.append({"model": name} | measure(model, x, args.calls))
        print(json.dumps(rows[-1]), flush=True)
    about = {
        "machine": f"{platform.machine()}, one thread",
        "torch": torch.__version__,
        "onnxruntime": onnxruntime.__version__,
        "entourage": __version__,
        "set": [OBJECTS, FEATURES],
        "calls": args.calls,
        "rows": rows,
    }
    args.out.write_text(json.dumps(about, indent=1) + "\n")


if __name__ == "__main__":
    main()
