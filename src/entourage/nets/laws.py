"""The laws that every net obeys, as functions: hold a net of your own to them by `check_net`.

Training, scoring in batches, members of an ensemble and model files rely on these laws. The tests hold the nets of the
library to the same functions.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from sklearn.base import clone
from torch import Tensor
from torch.autograd.gradcheck import GradcheckError
from torch.func import functional_call

from entourage.errors import NetError, ParameterError
from entourage.nets.base import Net, Scorer

__all__ = ["LAWS", "Law", "Make", "check_net"]

#: Makes the module of a net anew, in double precision and always with the same weights.
Make: TypeAlias = Callable[[], Scorer]

#: A law: it takes what makes the module, and the number of features. What breaks it is an `AssertionError`.
Law: TypeAlias = Callable[[Make, int], None]

ORDER = [3, 0, 5, 1, 4, 2]  # of six objects, shuffled


def check_net(net: Any, n_features: int = 3) -> list[str]:
    """Check that a net obeys every law; return the laws.

    The net is built in double precision and moved a little from its initial weights, so that no bias is 0. Take a
    small width: gradients are compared with finite differences.

    Parameters
    ----------
    net : a net of your own, such as ``MyNet(width=8)``
    n_features : of the objects it is tried on

    Raises
    ------
    NetError
        The first law that is broken, what came instead, and what usually mends it.

    Examples
    --------
    >>> from entourage import FATE
    >>> check_net(FATE(width=4))[:2]
    ['a batch of one and a set of one work', 'no global generator is drawn from']
    """
    if not isinstance(net, Net):
        hint = f"; did you mean {net.__name__}()?" if isinstance(net, type) else "."
        raise ParameterError(f"check_net needs a net, an instance of a subclass of Net; got {net!r}{hint}")
    _check_description(net)

    def make() -> Scorer:
        generator = torch.Generator().manual_seed(1)
        scorer = net.build(n_features, generator).double()
        with torch.no_grad():
            for parameter in scorer.parameters():
                parameter.add_(
                    torch.randn(parameter.shape, generator=generator, dtype=torch.float64), alpha=0.1
                )
        return scorer.eval()

    _check_weights(net, n_features)
    for law, advice in LAWS.items():
        try:
            law(make, n_features)
        except (AssertionError, GradcheckError) as broken:
            reason = " ".join(str(broken).split())[:300]
            raise NetError(
                f"{type(net).__name__} breaks a law of nets: {_words(law)}. {reason} {advice}"
            ) from broken
    return [_words(law) for law in LAWS]


def _words(law: Law) -> str:
    return law.__name__.replace("_", " ")


def _check_description(net: Net) -> None:
    """See that the constructor only stores."""
    try:
        same = repr(clone(net)) == repr(net)
    except (AttributeError, RuntimeError, TypeError) as error:
        raise NetError(
            f"The constructor of {type(net).__name__} needs to store every parameter under its own name and to do "
            f"nothing else, so that copies can be made: {error} Check values in build."
        ) from error
    if not same:
        raise NetError(
            f"A copy of {type(net).__name__} has other parameters; its constructor must only store."
        )


def _check_weights(net: Net, n_features: int) -> None:
    """See that the weights come from the generator, and from nothing else."""
    before = torch.get_rng_state()
    built = [net.build(n_features, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)]
    if not isinstance(built[0], Scorer):
        raise NetError(
            f"build of {type(net).__name__} needs to return a module derived from entourage.nets.Scorer; got "
            f"{type(built[0]).__name__}."
        )
    weights = [list(scorer.parameters()) for scorer in built]
    same = all(torch.equal(a, b) for a, b in zip(weights[0], weights[1], strict=True))
    other = any(not torch.equal(a, b) for a, b in zip(weights[0], weights[2], strict=True))
    if not (same and other and torch.equal(torch.get_rng_state(), before)):
        raise NetError(
            f"{type(net).__name__} breaks a law of nets: weights are drawn from the generator that build gets, and "
            "from nothing else, so that a seed determines the model. Make layers by linear_map or MLP of "
            "entourage.nets.layers, or draw every weight with generator=generator."
        )


# --- what the laws are tried on ------------------------------------------------------------------------


def _objects(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def _ragged(d: int, n: int = 4, m: int = 6) -> tuple[Tensor, Tensor]:
    """Return sets of m, m - 1, 2 and 1 objects, and the mask."""
    sizes = torch.tensor([m, m - 1, 2, 1])[:n]
    return _objects(n, m, d), torch.arange(m) < sizes[:, None]


def _wider(objects: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return the same sets with three more places of padding, which hold large numbers."""
    n, _, d = objects.shape
    more = torch.cat([objects, 100 * _objects(n, 3, d, seed=9)], dim=1)
    return more, torch.cat([mask, torch.zeros(n, 3, dtype=torch.bool)], dim=1)


def _must(holds: bool, reason: str) -> None:
    if not holds:
        raise AssertionError(reason)


def _agree(came: Tensor, due: Tensor, *, rtol: float | None = None, atol: float | None = None) -> None:
    """See that values are equal but for rounding; by default that of their type."""

    def words(found: str) -> str:
        if came.shape != due.shape:
            return found
        close = torch.isclose(came, due, rtol=rtol or 1e-7, atol=atol or 1e-7)
        most = float((came - due).detach().abs().max())
        return f"{int((~close).sum())} of {due.numel()} values differ, by up to {most:.3g}."

    torch.testing.assert_close(came, due, rtol=rtol, atol=atol, msg=words)


# --- the laws --------------------------------------------------------------------------------------------


def a_batch_of_one_and_a_set_of_one_work(make: Make, d: int) -> None:
    """Return one finite score an object, whatever the sizes."""
    for training in (False, True):
        scorer = make().train(training)
        for n, m in [(1, 6), (4, 1), (1, 1), (2, 2)]:
            scores = scorer(_objects(n, m, d))
            _must(scores.shape == (n, m), f"The scores of shape {(n, m)} came as {tuple(scores.shape)}.")
            _must(bool(scores.isfinite().all()), f"There are NaN or infinite scores of {n} sets of {m}.")


def no_global_generator_is_drawn_from(make: Make, d: int) -> None:
    """Draw what is random from generators that are given, so that training is reproducible."""
    scorer, before = make().train(), torch.get_rng_state()
    scorer(*_ragged(d))
    _must(torch.equal(torch.get_rng_state(), before), "Torch's global generator was drawn from in training.")


def scores_follow_their_objects_when_shuffled(make: Make, d: int) -> None:
    """Take the context as a set: the order of the objects plays no part."""
    scorer, objects = make(), _objects(4, 6, d)
    _agree(scorer(objects[:, ORDER]), scorer(objects)[:, ORDER])


def scores_of_a_padded_set_follow_their_objects_when_shuffled(make: Make, d: int) -> None:
    """Ignore padding that stands among the objects."""
    scorer, (objects, mask) = make(), _ragged(d)
    _agree(scorer(objects[:, ORDER], mask[:, ORDER]), scorer(objects, mask)[:, ORDER])


def a_mask_without_padding_is_no_mask(make: Make, d: int) -> None:
    """Take a mask that is True everywhere like no mask."""
    objects = _objects(4, 6, d)
    for training in (False, True):
        masked = make().train(training)(objects, torch.ones(4, 6, dtype=torch.bool))
        _agree(masked, make().train(training)(objects))


def padding_changes_no_score(make: Make, d: int) -> None:
    """Leave scores as they are under more padding, in training too; padding scores 0."""
    objects, mask = _ragged(d)
    wider, wider_mask = _wider(objects, mask)
    for training in (False, True):
        scores = make().train(training)(objects, mask)
        padded = make().train(training)(wider, wider_mask)
        _agree(padded[:, : objects.shape[1]], scores)
        _must(bool((padded[~wider_mask] == 0).all()), "The scores of the padding are not 0.")


def padding_scores_like_the_set_alone(make: Make, d: int) -> None:
    """Score a set alike padded, among others, and by itself."""
    scorer, (objects, mask) = make(), _ragged(d)
    together = scorer(objects, mask)
    for i, size in enumerate(mask.sum(1).tolist()):
        _agree(together[i : i + 1, :size], scorer(objects[i : i + 1, :size]))


def padding_moves_no_running_statistic(make: Make, d: int) -> None:
    """Learn buffers, such as those of batch normalisation, from objects only."""
    objects, mask = _ragged(d)
    one, other = make().train(), make().train()
    one(objects, mask)
    other(*_wider(objects, mask))
    for a, b in zip(one.buffers(), other.buffers(), strict=True):
        _agree(a, b)


def a_set_of_padding_alone_gives_no_NaN(make: Make, d: int) -> None:
    """Keep scores and gradients finite where a whole set is padding."""
    for training in (False, True):
        scorer = make().train(training)
        objects = _objects(2, 4, d).requires_grad_()
        mask = torch.tensor([[True] * 4, [False] * 4])
        for some in (mask, torch.zeros_like(mask)):
            scores = scorer(objects, some)
            _must(bool((scores[~some] == 0).all()), "The scores of the padding are not 0.")
            if scores.requires_grad:
                scores.sum().backward()
            gradients = [value.grad for value in (objects, *scorer.parameters()) if value.grad is not None]
            _must(all(bool(g.isfinite().all()) for g in gradients), "There are NaN or infinite gradients.")


def a_batch_of_one_scores_as_within_a_batch(make: Make, d: int) -> None:
    """Score a set without regard to the others of its batch."""
    scorer, objects = make(), _objects(4, 6, d)
    _agree(scorer(objects[2:3]), scorer(objects)[2:3])


def gradients_match_finite_differences(make: Make, d: int) -> None:
    """Have true gradients of features and of weights; in training too, unless training draws at random."""
    objects, mask = _ragged(d, n=3, m=4)
    with torch.no_grad():
        drawing = make().train()
        draws = not torch.equal(drawing(objects, mask), drawing(objects, mask))  # two calls are two functions
    for training in (False,) if draws else (False, True):
        scorer = make().train(training)
        weights = {name: value.detach() for name, value in scorer.named_parameters()}
        directions = {name: _objects(*value.shape, seed=5) for name, value in weights.items()}

        def along(t: Tensor, scorer: Scorer, weights: dict[str, Tensor], ways: dict[str, Tensor]) -> Tensor:
            moved = {name: weights[name] + t * ways[name] for name in weights}
            scores: Tensor = functional_call(scorer, moved, (objects, mask))
            return scores

        def at(x: Tensor, scorer: Scorer) -> Tensor:
            scores: Tensor = scorer(x, mask)
            return scores

        inputs = objects.clone().requires_grad_()
        torch.autograd.gradcheck(at, (inputs, scorer))  # type: ignore[arg-type]
        step = torch.zeros((), dtype=torch.float64, requires_grad=True)
        torch.autograd.gradcheck(along, (step, scorer, weights, directions))  # type: ignore[arg-type]


def a_large_set_scores_like_its_float64_self(make: Make, d: int) -> None:
    """Score a set of 300 objects in single precision as in double, to about 1e-3."""
    scorer, objects = make(), _objects(1, 300, d).float().double()
    with torch.no_grad():
        exact = scorer(objects)
        single = scorer.float()(objects.float())
    _agree(single.double(), exact, rtol=1e-3, atol=1e-4)


_ORDER = "Aggregate the others by a sum, a mean or a maximum, not by their places."
_MASK = (
    "Leave the padding out of every aggregate, as in torch.where(mask[..., None], hidden, 0.0), divide by mask.sum(1), "
    "and return entourage.nets.layers.present(scores, mask)."
)
_STATISTICS = 'Take norm="batch" of entourage.nets.layers.MLP, which ignores padding, or layer normalisation.'
_SHAPE = "Return scores (n, m), as by .squeeze(-1), never a bare squeeze()."

#: Every law, with what usually mends a net that breaks it.
LAWS: dict[Law, str] = {
    a_batch_of_one_and_a_set_of_one_work: _SHAPE,
    no_global_generator_is_drawn_from: "Take entourage.nets.layers.Dropout for dropout.",
    scores_follow_their_objects_when_shuffled: _ORDER,
    scores_of_a_padded_set_follow_their_objects_when_shuffled: f"{_ORDER} {_MASK}",
    a_mask_without_padding_is_no_mask: _MASK,
    padding_changes_no_score: _MASK,
    padding_scores_like_the_set_alone: _MASK,
    padding_moves_no_running_statistic: _STATISTICS,
    a_set_of_padding_alone_gives_no_NaN: "Divide by sizes.clamp(min=1), and replace -inf before a softmax.",
    a_batch_of_one_scores_as_within_a_batch: f"Aggregate over the objects (axis 1), not over the sets. {_STATISTICS}",
    gradients_match_finite_differences: "Don't detach what is learnt from.",
    a_large_set_scores_like_its_float64_self: "Subtract the largest before exp, and average rather than sum.",
}
