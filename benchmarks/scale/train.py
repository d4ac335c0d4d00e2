"""Training by two processes of one thread beside one: ``python -m benchmarks.scale train``.

A net that computes (SetAttention, width 128), in batches of 256 sets (the default). Each run is a command of its
own; runs of one and of two processes take turns. The seconds of a step are those between the first evaluation and the
last, evaluations included (they are shared out, too). Rows in ``results/scale.jsonl``.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.scale.record import record
from entourage import FATE, Ranker, SetAttention
from entourage.data import make_medoid
from entourage.distributed import processes

NETS = {"set_attention": lambda: SetAttention(width=128, rounds=3, features="linear"), "fate": lambda: FATE()}


def train(net: str, steps: int, objects: int, out: Path) -> None:
    """Train in the processes of this launch; the first one writes the seconds of a step."""
    X, ranks = make_medoid(n_sets=4000, n_objects=objects, n_features=10, random_state=0)
    times: list[float] = []
    with processes() as here:
        model = Ranker(
            NETS[net](),
            steps=steps,
            batch_size=256,
            evaluate_every=max(1, steps // 4),
            device="cpu",
            random_state=0,
        )
        model.fit(X, ranks, on_evaluation=lambda score: times.append(time.perf_counter()))
        if here.first:
            rows = model.history_
            seconds = (times[-1] - times[0]) / (rows[-1]["step"] - rows[0]["step"])
            out.write_text(json.dumps({"seconds": seconds, "score": model.best_score_}))


def run(net: str, steps: int, objects: int, count: int) -> dict[str, float]:
    """Train in so many processes; return the seconds of a step, and the held-out score."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "found.json"
        launcher = (
            ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
            if count > 1
            else []
        )
        command = [sys.executable, *launcher, "-m", "benchmarks.scale", "train", "--net", net]
        command += ["--steps", str(steps), "--objects", str(objects), "--inside", str(out)]
        subprocess.run(
            command, check=True, env=os.environ | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
        )
        return json.loads(out.read_text())


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--net", choices=NETS, default="set_attention")
    parser.add_argument("--steps", type=int, default=48)
    parser.add_argument("--objects", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.inside is not None:
        train(args.net, args.steps, args.objects, args.inside)
        return
    turns = [
        [run(args.net, args.steps, args.objects, count) for count in (1, args.processes)]
        for _ in range(args.repeats)
    ]
    ratios = [one["seconds"] / many["seconds"] for one, many in turns]
    record(
        {
            "what": "train",
            "net": args.net,
            "processes": args.processes,
            "objects": args.objects,
            "steps": args.steps,
            "seconds_a_step": [[round(one["seconds"], 4) for one in turn] for turn in turns],
            "scores": [round(one["score"], 6) for one in turns[0]],
            "ratio": round(statistics.median(ratios), 2),
            "ratios": [round(ratio, 2) for ratio in ratios],
        }
    )


if __name__ == "__main__":
    main()
