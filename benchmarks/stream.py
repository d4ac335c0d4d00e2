"""Scoring at volume, Parquet to Parquet: ``python -m benchmarks.stream --sets 1000000``.

Ours is `entourage.estimators.prediction_tables.predict_stream`, what ``entourage predict`` does. The reference is
what can't be left out: pyarrow reads the file and writes the same table with two columns more, and the net scores the
same sets, standardised and on tensors, in the same batches. In turns in one process; the peak memory in a process of
its own.
"""

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch
from pyarrow import parquet

from benchmarks.measure import peak_megabytes
from entourage import FATE, Ranker, __version__, load
from entourage.data.encoder import TableEncoder
from entourage.estimators.inputs import encoder_of
from entourage.estimators.prediction_tables import predict_stream
from entourage.training.batches import Resident, predict_packed

RESULTS = Path(__file__).parent / "results"
FEATURES = 10


def write(path: Path, sets: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.integers(5, 21, sets)
    rows = int(sizes.sum())
    columns = {"set": np.repeat(np.arange(sets), sizes)}
    columns |= {f"x{i}": rng.normal(size=rows).astype(np.float32) for i in range(FEATURES)}
    order = rng.random(rows)
    columns["place"] = np.lexsort((order, columns["set"])) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    parquet.write_table(pa.table(columns), path)


def raw(model: Ranker, path: Path, out: Path) -> dict[str, float]:
    times = {}
    start = time.perf_counter()
    table = parquet.read_table(path)
    times["read"] = time.perf_counter() - start
    sets = encoder_of(model)(table, with_target=False).sets  # not timed
    data = Resident(model.view_(sets), torch.device("cpu"))
    start = time.perf_counter()
    scores = predict_packed(model.scorer_, data).numpy()
    times["forward"] = time.perf_counter() - start
    more = table.append_column("score", pa.array(scores)).append_column(
        "rank", pa.array(scores.astype(np.int64))
    )
    start = time.perf_counter()
    parquet.write_table(more, out)
    times["write"] = time.perf_counter() - start
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", type=int, default=1_000_000)
    parser.add_argument(
        "--memory", nargs=3, metavar=("MODEL", "IN", "OUT"), help="used by the benchmark itself"
    )
    args = parser.parse_args()
    if args.memory:
        model = load(args.memory[0])
        before = peak_megabytes()
        predict_stream(model, args.memory[1], args.memory[2])
        print(peak_megabytes() - before)
        return
    with tempfile.TemporaryDirectory() as folder:
        small, large, out = (Path(folder) / f"{name}.parquet" for name in ("small", "large", "out"))
        write(small, 2000, 0)
        write(large, args.sets, 1)
        table = parquet.read_table(small)
        encoder = TableEncoder.fit(table, set_id="set", target="place")
        model = Ranker(FATE(), steps=5, device="cpu", random_state=0)
        model.fit(encoder(table).sets)
        model.save(Path(folder) / "model")
        ours, parts = [], []
        for _ in range(3):
            start = time.perf_counter()
            rows = predict_stream(model, large, out)
            ours.append(time.perf_counter() - start)
            parts.append(raw(model, large, out))
        best = statistics.median(ours)
        reference = {name: statistics.median(p[name] for p in parts) for name in parts[0]}
        total = sum(reference.values())
        command = [sys.executable, "-m", "benchmarks.stream", "--memory"]
        paths = [str(Path(folder) / "model"), str(large), str(out)]
        memory = float(subprocess.run([*command, *paths], check=True, capture_output=True, text=True).stdout)
        size = large.stat().st_size / 1e6
    result = {
        "sets": args.sets,
        "rows": rows,
        "file_megabytes": round(size),
        "ours_seconds": round(best, 2),
        "reference_seconds": {name: round(value, 2) for name, value in reference.items()},
        "ratio": round(best / total, 2),
        "extra_megabytes": round(memory),
        "machine": f"{platform.machine()}, {torch.get_num_threads()} threads",
        "versions": {"entourage": __version__, "torch": torch.__version__, "pyarrow": pa.__version__},
    }
    print(json.dumps(result, indent=1))
    (RESULTS / "stream.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
