"""HVC-Net (Shang, Liao, Ishibuchi 2022) with its published weights, from a file that the user has."""

import itertools
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor, nn

from entourage.data.sets import Sets
from entourage.errors import UserError

__all__ = ["HVCNet"]

POINTS_AT_ONCE = 2**17  # scored at a time


class HVCNet(nn.Module):
    """A point's state is phi(x); rounds add eta_k(mean state) to every state; sigmoid(rho(state)) is its contribution.

    Parameters
    ----------
    file : weights as safetensors, ``phi.*``, ``etas.K.*`` and ``rho.*``
    """

    def __init__(self, file: Path) -> None:
        super().__init__()
        try:
            weights = load_file(file)
            width, self.n_features = weights["phi.0.weight"].shape
            rounds = 1 + max(int(name.split(".")[1]) for name in weights if name.startswith("etas."))
            self.phi = _part(self.n_features, width, width, norm=True)
            self.etas = nn.ModuleList(_part(width, width, width, norm=True) for _ in range(rounds))
            self.rho = _part(width, width, 1, norm=False)
            self.load_state_dict(weights)
        except (OSError, KeyError, ValueError, RuntimeError, SafetensorError) as error:
            raise UserError(
                f"{file} doesn't hold the weights of HVC-Net (phi.*, etas.K.*, rho.* as safetensors): {error}"
            ) from None
        self.eval()

    @classmethod
    def find(cls, folder: Path, n_features: int) -> "HVCNet":
        """Load the weights for so many objectives from a folder: ``M5_K10.safetensors``, for example."""
        files = sorted(folder.glob(f"M{n_features}_*.safetensors"))
        if not files:
            raise UserError(
                f"{folder} holds no weights of HVC-Net for {n_features} objectives, M{n_features}_K10.safetensors."
            )
        net = cls(files[0])
        if net.n_features != n_features:
            raise UserError(
                f"{files[0]} is for {net.n_features} objectives, not {n_features}: is it another's name?"
            )
        return net

    def forward(self, objects: Tensor, mask: Tensor) -> Tensor:
        """Return the contribution of each point, (n, m)."""
        states = self.phi(objects)  # (n, m, k)
        there = mask.unsqueeze(-1)
        count = there.sum(1, keepdim=True).clamp(min=1)
        for eta in self.etas:
            states = states + eta((states * there).sum(1, keepdim=True) / count)
        return torch.sigmoid(self.rho(states)).squeeze(-1)

    @torch.inference_mode()
    def contributions(self, sets: Sets, device: torch.device) -> NDArray[np.float64]:
        """Return the contributions of all points, packed."""
        self.to(device)
        result = np.empty(len(sets.objects))
        for _, rows in sets.by_size():
            step = max(1, POINTS_AT_ONCE // rows.shape[1])
            for part in (rows[i : i + step] for i in range(0, len(rows), step)):
                points = torch.from_numpy(sets.objects[part].astype(np.float32)).to(device)
                mask = torch.ones(part.shape, dtype=torch.bool, device=device)
                result[part] = self(points, mask).double().cpu().numpy()
        return result


def _part(n_in: int, width: int, n_out: int, *, norm: bool) -> nn.Sequential:
    sizes = itertools.pairwise([n_in, width, width, width, n_out])
    layers: list[nn.Module] = []
    for a, b in sizes:
        layers += [nn.Linear(a, b), nn.ReLU()]
    return nn.Sequential(*layers[:-1], *([nn.LayerNorm(n_out)] if norm else []))
