"""The plainest way to do the same work, to be measured against."""

import torch
from torch import Tensor, nn

from entourage.losses import hinge_ranking_loss


def hand_written_epoch(
    net: nn.Module, optimizer: torch.optim.Optimizer, X: Tensor, ranks: Tensor, size: int
) -> None:
    """One epoch as anyone would write it: shuffle, slice, forward, backward, step."""
    net.train()
    order = torch.randperm(len(X), generator=torch.Generator().manual_seed(0))
    for start in range(0, len(X), size):
        chosen = order[start : start + size]
        scores = net(X[chosen])
        loss = hinge_ranking_loss(scores, ranks[chosen], torch.ones_like(scores, dtype=torch.bool)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class ConcatenatedPairs(nn.Module):
    """FETA by concatenating all pairs and averaging, with the weights of ours."""

    def __init__(self, ours: nn.Module) -> None:
        super().__init__()
        self.alone = self._plain(ours.alone)
        self.pairs = self._plain(ours.pairs)

    @staticmethod
    def _plain(mlp: nn.Module) -> nn.Sequential:
        layers: list[nn.Module] = []
        for linear in mlp.linears:
            layers += [linear, nn.ReLU()]
        return nn.Sequential(*layers[:-1])

    def forward(self, objects: Tensor) -> Tensor:
        """Score ``objects (n, m, d)``."""
        n, m, d = objects.shape
        left = objects[:, :, None].expand(n, m, m, d)
        right = objects[:, None].expand(n, m, m, d)
        support = self.pairs(torch.cat([left, right], dim=-1)).squeeze(-1)  # (n, m, m)
        support = support.masked_fill(torch.eye(m, dtype=torch.bool), 0.0)
        return self.alone(objects).squeeze(-1) + support.sum(2) / (m - 1)
