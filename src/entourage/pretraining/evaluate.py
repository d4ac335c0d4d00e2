"""How near a net comes to the oracle on worlds of the prior: by labelled sets, by family, with and without context."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from entourage.nets.prior_fitted import EFFECTS, SHARES, PriorFittedNet
from entourage.pretraining.loop import Lesson
from entourage.pretraining.prior import FAMILIES, Shape, draw_worlds

__all__ = ["evaluate"]

LABELLED = (16, 32, 100, 300, 1000)
QUERIES = 50
AT_ONCE = 40_000  # objects


@torch.no_grad()
def evaluate(
    net: PriorFittedNet, worlds: int, device: torch.device, seed: int = 12_345
) -> Iterator[dict[str, Any]]:
    """Yield rows: the gain over a uniform choice of the net and of the oracle, per set, and their ratio."""
    net = net.to(device).eval()
    for labelled in LABELLED:
        for m, d in ((3, 3), (5, 8), (5, 20)):
            generator = torch.Generator(device).manual_seed(seed)
            each = max(1, min(worlds, AT_ONCE // ((labelled + QUERIES) * m)))
            mine, best, share, families, none = [], [], [], [], []
            effects: list[Tensor] = []
            for _ in range(-(-worlds // each)):
                drawn = draw_worlds(Shape(each, labelled + QUERIES, m, d), generator)
                lesson = Lesson.of(drawn, "choice", labelled)
                with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
                    reading = lesson.read_by(net)
                mine.append(reading.gains("choice").mean(1))
                best.append((lesson.oracle + reading.stakes("choice")).mean(1))
                share.append(drawn.share)
                families.append(drawn.families)
                none.append(reading.memory.verdict.share.softmax(-1)[:, 0])
                effects.append(
                    torch.stack([drawn.effects.float(), reading.memory.verdict.effects.sigmoid()], -1)
                )
            gain, ideal, part, kinds = (torch.cat(x).float().cpu() for x in (mine, best, share, families))
            p_none, found = torch.cat(none).cpu(), torch.cat(effects).cpu()
            groups = {
                "all": torch.ones_like(part, dtype=torch.bool),
                "no context": part == 0,
                "context": part > 0,
            }
            for i, name in enumerate(FAMILIES):
                groups[f"only {name}"] = (kinds[:, i] > 0) & ((kinds > 0).sum(1) == 1)
                groups[f"with {name}"] = kinds[:, i] > 0
            yield {
                "sets": labelled,
                "objects": m,
                "columns": d,
                "reached": {
                    name: [round(float(gain[rows].sum() / ideal[rows].sum()), 4), int(rows.sum())]
                    for name, rows in groups.items()
                    if rows.sum() >= 5
                },
                "loss": round(float((ideal - gain).mean()), 5),
                "false alarms": round(float((p_none[part == 0] < 0.05).float().mean()), 4),
                "power": round(float((p_none[part > SHARES[3]] < 0.05).float().mean()), 4),
                "effects": {
                    name: [
                        round(float(found[:, i, 1][found[:, i, 0] == value].mean()), 3) for value in (0, 1)
                    ]
                    for i, name in enumerate(EFFECTS)
                },
            }
