"""The estimator of rankings."""

from typing import Any, Self

from entourage.estimators.calibration import Calibration
from entourage.estimators.net_estimator import NetEstimator
from entourage.estimators.probabilities import CalibratedRanker
from entourage.estimators.setup import Start
from entourage.training.loop import Outcome

__all__ = ["Ranker"]


class Ranker(CalibratedRanker, NetEstimator):
    """Ranks the objects of a set by context-dependent utilities: each depends on the others of the set.

    Examples
    --------
    >>> from entourage import FATE, Ranker
    >>> from entourage.data import make_medoid
    >>> X, ranks = make_medoid(n_sets=200, random_state=0)
    >>> model = Ranker(FATE(width=16), steps=100, random_state=0).fit(X, ranks)
    >>> model.predict(X[:1]).shape
    (1, 5)

    Parameters
    ----------
    net : FATE(), FETA(), SetAttention(), ContextFree(), ..., a name such as "fate", "auto" or "pretrained"; optional
        By default ``FATE()``. Names are those of the command line: "fate", "feta", "set_attention", "context_free".
        "auto" fits linear models, boosted trees and nets, with and without the set-relative view, and blends the best
        (:mod:`entourage.selection.auto`). It sets the batch size, the patience and, unless they are given, the steps of
        its nets by the number and the size of the sets. "pretrained" needs no training: a net that has learnt from
        simulated choices (:mod:`entourage.pretrained`) reads the labelled sets and scores new ones by them; it is for
        16 to about a thousand sets. Of the parameters below only ``fine_tune``, ``validation``, ``categories``,
        ``device``, ``verbose`` and ``random_state`` play a part then; ``loss``, ``members``, ``relative``,
        ``subset_size`` and ``checkpoint`` are refused.
    loss : {"hinge", "logistic", "plackett_luce", "listnet"} or callable
        See :mod:`entourage.losses`.
    optimizer : {"adamw", "sgd"}
        "sgd" has Nesterov momentum, as in the paper.
    learning_rate : float
        After the warm-up.
    momentum : float
        Of "sgd".
    schedule : {"cosine", "constant"}
        The learning rate after the warm-up: cosine decay to 0, or constant.
    warmup : float
        The share of the steps in which the learning rate rises to its value.
    weight_decay : float
        Shrinks weight matrices a little in each step (decoupled from the gradient with "adamw").
    l1, l2 : float
        Penalties on the weight matrices, added to the loss.
    steps : int
        How many batches to train on, unless ``epochs`` says otherwise.
    epochs : float, optional
        How often to go through the training data, instead of ``steps``.
    batch_size : int
        Sets in a batch. Batches of large sets are smaller: at most 131,072 objects.
    subset_size : int or (int, int), optional
        Learn from random subsets of so many objects, drawn anew for every batch, instead of whole sets: for sets of
        thousands. A pair is the smallest and the largest size; each batch draws one between them, for a model that is
        to score sets of many sizes. Held-out sets are evaluated whole, and predictions are always of whole sets.
    subsets_per_set : int
        How many subsets to draw from each set in an epoch.
    clip : float, optional
        The largest norm of a gradient.
    ema : float, optional
        The decay of an exponential average of the weights, which is then used instead of the last
        weights; None for no average.
    validation : float
        The share of the sets held out to choose the best weights and to stop early, by their weights where there
        are such; 0 holds out none, and neither do fewer than 20 sets. "pretrained" calibrates by sets that are held
        out from a reading of others: up to 100 sets in five folds, up to 300 in three, above that a fifth; 0 for no
        calibration.
    evaluate_every : int, optional
        Steps between two evaluations of the held-out sets, and between checkpoints; by default a fortieth of all
        steps. Then there are also evaluations at an eighth, a quarter and half of that, since small data overfit
        quickly.
    patience : int, optional
        Early stopping: stop after so many evaluations without a better score.
    standardize : bool or {"moments", "quantiles", "piecewise"}
        How numbers are brought to a common scale, by the training data. True: mean 0 and variance 1, after a column
        with heavy tails, outliers or skew is mapped to a normal shape by its quantiles. "moments": without that map.
        "quantiles": with every number mapped. "piecewise": with every number also encoded piecewise-linearly between
        its quantiles. A feature that doesn't vary is left out, always: its effect is not identified.
    relative : bool, "all", or list of columns or places
        Which numbers the net also sees relative to their set: centred, as z-score, as rank, and as the gaps to the
        largest and the smallest (:mod:`entourage.data.relative`). True or "all": every number.
    monotone : dict of columns or places, and signs, optional
        ``{"price": -1}``: a higher price of an object never raises the probability that this object is chosen (ranked
        first), all else equal; +1: it never lowers it. Guaranteed for every net, also where the context changes with
        the price, by :class:`entourage.nets.monotone.Monotone`. With "auto" only nets are blended.
    members : int
        How many nets to train, at once, for an ensemble: their scores are averaged, and their disagreement measures
        uncertainty (``predict_scores(X, return_std=True)``, `predict_pairs`).
    budget : float
        With "auto": how many seconds `fit` may take. Training is stopped by it, too.
    workers : int
        With "auto": fits side by side, in processes of one thread each. More than 1 needs a script that is guarded by
        ``if __name__ == "__main__"``.
    fine_tune : bool
        With "pretrained": whether its net is trained for a few hundred steps on the labelled sets.
    categories : list of (place, levels), optional
        Features that are codes rather than numbers, 1 to the number of levels; each level has a learnt vector, and
        a code outside, such as 0, is a level that was never seen. By default those that a table has.
    device : str
        "cpu", "cuda", ...; "auto" is the GPU where there is one.
    precision : {"float32", "bfloat16"}
        "bfloat16" computes the net in mixed precision, in training and, on a GPU, in scoring.
    compile : bool or "auto"
        Whether ``torch.compile`` makes the training step, which takes from 5 to 30 seconds before the first one.
        "auto" does so on a GPU where there are so many steps that it pays, from 80,000 on. Only for nets without
        dropout, on sets of one size.
    checkpoint : path, optional
        A folder, of its own for each run, in which training keeps its state. Where it finds a run of the
        same data and settings, `fit` resumes it, with the same result as an uninterrupted run.
    on_interrupt : {"raise", "keep"}
        What Ctrl-C does to `fit`: "raise" leaves the model unfitted, "keep" ends the training there, keeps the best
        weights so far and warns.
    verbose : bool
        Whether to show a progress bar, while training and while scoring.
    random_state : int, numpy Generator or RandomState, or None
        The same seed gives the same model: to the bit on one CPU.

    Attributes
    ----------
    scorer_ : the fitted module
    net_ : the net it was built from
    reading_ : with "pretrained", what its net has read of the labelled sets, instead of ``scorer_`` and ``net_``;
        ``reading_.verdict()`` is what it says of context
    n_labelled_sets_ : with "pretrained", how many sets these were
    blend_ : with "auto", the models and their weights, instead of ``scorer_``, ``net_`` and what belongs to them
    tried_ : with "auto", the held-out score of each candidate, its tier, its weight and its seconds
    history_ : a row (step, learning rate, loss, score) for each evaluation of the held-out sets; also "halves", the
        scores of two halves of them
    best_score_ : the best score on the held-out sets, None where none were held out. The weights were selected by it,
        so it is too optimistic, the more so the fewer sets there are
    held_out_score_ : a score without this selection bias: each half of the held-out sets at the step that was best
        for the other half. None where none were held out
    n_features_in_, n_situation_features_in_ : how many features were seen
    feature_names_in_ : the columns that were learnt from, where it was a table
    n_steps_ : how many steps were trained
    interrupted_ : whether training was interrupted by Ctrl-C
    table_ : what turns tables into sets, where the model was fitted to a table; else None
    temperature_ : by what scores are divided for probabilities, learnt from the held-out sets or by `calibrate`; None
        where neither was done
    calibration_ : the temperature, and the thresholds of place intervals; see :mod:`entourage.estimators.calibration`
    """

    def finish(self, start: Start, outcome: Outcome) -> Self:
        """Keep the results of training, and calibrate on the held-out sets."""
        super().finish(start, outcome)
        self._calibrate_in_fit(start.sets, start.held_out, start.weights)
        return self

    def keep_reading(self, *arguments: Any, **named: Any) -> None:
        """Keep what the pretrained net has read: its scores are utilities of the Plackett-Luce model as they are."""
        super().keep_reading(*arguments, **named)
        self.calibration_ = Calibration(1.0, (), (), self.n_labelled_sets_)
