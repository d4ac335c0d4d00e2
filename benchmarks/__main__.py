"""CPU benchmarks: prints a table of ratios and keeps it, with the machine, in ``results/cpu.json``."""

import json
import platform
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.measure import extra_memory, in_turns
from benchmarks.reference import ConcatenatedPairs, hand_written_epoch
from entourage import FATE, FETA, ContextFree, Ranker, __version__
from entourage.data import Sets, make_medoid
from entourage.estimators.setup import plan_of
from entourage.losses import hinge_ranking_loss
from entourage.nets import layers
from entourage.training.batches import Resident
from entourage.training.loop import train

RESULTS = Path(__file__).parent / "results"
CPU = torch.device("cpu")


@dataclass
class Row:
    """One figure beside its target."""

    what: str
    ours: str
    reference: str
    value: float
    unit: str
    target: float
    at_most: bool = True

    @property
    def met(self) -> bool:
        """Whether the figure is on the right side of its target."""
        return self.value <= self.target if self.at_most else self.value >= self.target


def training_epoch(name: str, net: object) -> Row:
    X, ranks = make_medoid(10_000, random_state=0)
    data = Resident(Sets.of((X - 0.5) / 0.29, ranks), CPU)
    scorer = net.build(2, torch.Generator().manual_seed(0))
    plan = plan_of(Ranker(net, epochs=1, random_state=0), data, 0, scorer)

    plain = net.build(2, torch.Generator().manual_seed(0))
    optimizer = torch.optim.AdamW(plain.parameters(), lr=0.003, weight_decay=0.1)
    objects, targets = data.objects, data.targets
    ours, reference = in_turns(
        lambda: train(scorer, hinge_ranking_loss, data, plan),
        lambda: hand_written_epoch(plain, optimizer, objects, targets, 256),
        repeats=21,
    )
    return Row(
        f"training epoch, {name}, 10,000 sets of 5",
        f"{ours:.3f} s",
        f"{reference:.3f} s hand-written loop",
        ours / reference,
        "x",
        1.1,
    )


def prediction(name: str, net: object) -> Row:
    X, ranks = make_medoid(100_000, random_state=0)
    model = Ranker(net, steps=2, random_state=0, device="cpu").fit(X[:1000], ranks[:1000])
    objects = torch.from_numpy(X)

    @torch.no_grad()
    def raw() -> None:
        with patch.object(layers, "TILE_OBJECTS", {"cpu": len(objects) * 5}):  # in one piece
            model.scorer_(objects)

    ours, reference = in_turns(lambda: model.predict(X), raw)
    return Row(
        f"predict, {name}, 100,000 sets of 5",
        f"{ours:.3f} s",
        f"{reference:.3f} s raw forward pass",
        ours / reference,
        "x",
        1.3,
    )


def one_photograph() -> Row:
    """FATE on 3,355 regions: a whole `predict_scores` against the bare module."""
    rng = np.random.default_rng(0)
    X, ranks = (
        rng.normal(size=(20, 3355, 42)).astype(np.float32),
        rng.permuted(np.tile(np.arange(3355), (20, 1)), axis=1),
    )
    settings = {"steps": 2, "subset_size": 172, "device": "cpu", "random_state": 0}
    model = Ranker(FATE(), **settings).fit(X, ranks)
    objects = torch.from_numpy(X[:1])

    @torch.no_grad()
    def raw() -> None:
        model.scorer_(objects)

    ours, reference = in_turns(lambda: model.predict_scores(X[:1]), raw, repeats=51)
    return Row(
        "predict_scores, FATE, one set of 3,355 (d = 42)",
        f"{1e3 * ours:.1f} ms",
        f"{1e3 * reference:.1f} ms raw forward pass",
        ours / reference,
        "x",
        1.5,
    )


def one_large_set() -> list[Row]:
    net = FETA(width=64, depth=2).build(20, torch.Generator().manual_seed(0)).eval()
    plain = ConcatenatedPairs(net)
    objects = torch.randn(1, 3355, 20, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        assert torch.allclose(net(objects), plain(objects), atol=1e-4), "not the same function"
        ours, reference = in_turns(lambda: net(objects), lambda: plain(objects), repeats=3)
    memory, plain_memory = extra_memory("feta", 3355), extra_memory("concatenated", 3355)
    return [
        Row(
            "FETA, one set of 3,355 (d = 20, 2 x 64)",
            f"{ours:.2f} s",
            f"{reference:.2f} s concatenated pairs",
            reference / ours,
            "x faster",
            3.0,
            at_most=False,
        ),
        Row(
            "FETA, the same, extra memory",
            f"{memory['megabytes']:.0f} MB",
            f"{plain_memory['megabytes']:.0f} MB concatenated pairs",
            memory["megabytes"],
            "MB",
            400,
        ),
    ]


def one_huge_set() -> list[Row]:
    net = FATE().build(20, torch.Generator().manual_seed(0)).eval()
    objects = torch.randn(1, 1_000_000, 20, generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        all_of_them, a_tenth = in_turns(lambda: net(objects), lambda: net(objects[:, :100_000]), repeats=5)
    small, large = extra_memory("fate", 100_000), extra_memory("fate", 1_000_000)
    return [
        Row(
            "FATE, one set of 1,000,000, time against 100,000",
            f"{all_of_them:.2f} s",
            f"{a_tenth:.2f} s",
            all_of_them / a_tenth,
            "x",
            12.0,
        ),
        Row(
            "FATE, the same, extra memory",
            f"{large['megabytes']:.0f} MB",
            f"{small['megabytes']:.0f} MB for 100,000",
            large["megabytes"],
            "MB",
            200,
        ),
    ]


def main() -> None:
    console = Console()
    rows = []
    for name, net in [("FATE", FATE()), ("FETA", FETA()), ("ContextFree", ContextFree())]:
        for job in (training_epoch, prediction):
            rows.append(job(name, net))
            console.print(f"{rows[-1].what}: {rows[-1].value:.2f} {rows[-1].unit}")
    rows += [one_photograph(), *one_large_set(), *one_huge_set()]
    table = Table("what", "ours", "reference", "figure", "target", "met")
    for row in rows:
        sign = "≤" if row.at_most else "≥"
        figures = f"{row.value:.2f} {row.unit}", f"{sign} {row.target:g}"
        table.add_row(row.what, row.ours, row.reference, *figures, "yes" if row.met else "NO")
    console.print(table)
    RESULTS.mkdir(exist_ok=True)
    content = {
        "command": "python -m benchmarks",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": f"{platform.machine()}, {torch.get_num_threads()} threads, {platform.system()}",
        "versions": {
            "entourage": __version__,
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
        "rows": [asdict(row) | {"met": row.met} for row in rows],
    }
    (RESULTS / "cpu.json").write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
