"""What all estimators share: scikit-learn citizens that join a net, a task and the training loop."""

import copy
import hashlib
import os
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self, Unpack

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from entourage.data.encoder import TableColumns
from entourage.data.sets import AnySets, Sets, is_frame
from entourage.errors import ParameterError, check_choice, check_number
from entourage.estimators.base import SetPredictor
from entourage.estimators.inputs import encoder_of, given_sets
from entourage.estimators.model_file import describe, loss_identity, members_of
from entourage.estimators.plugins import provided
from entourage.nets import FATE, FETA, Net, Scorer, SetAttention
from entourage.nets.embeddings import build_with_categories
from entourage.nets.ensemble import Stack
from entourage.tasks import Ranking
from entourage.tasks.evaluate import metric_of_sets
from entourage.tasks.losses import Loss, find_loss
from entourage.training import tensor_file as model_file
from entourage.training.batches import (
    Resident,
    SubsetResident,
    autocast,
    find_device,
    predict_packed,
    progress_bar,
)
from entourage.training.loop import Judge, Outcome, checkpoint_file, score_not_chosen_by, train
from entourage.training.model_check import read_seed
from entourage.training.plan import Plan
from entourage.training.standardizer import Standardizer

__all__ = ["SetEstimator"]

MOST_TO_HOLD_OUT = 20_000  # of sets on disk
FEWEST_TO_HOLD_OUT = 20  # with fewer informative sets than this, all are needed for learning
LARGE_SET = 20_000  # objects, from which on looking at all pairs takes so long that it is said beforehand
COMPILE_FROM = 80_000  # steps; on an H200 compiling takes 16 s at first and saves 0.2 ms of a step of FATE


class SetEstimator(SetPredictor):
    """What all estimators share; they differ by their task.

    Parameters
    ----------
    net : FATE(), FETA(), SetAttention(), ContextFree(), ..., or "auto"; optional
        By default ``FATE()``. "auto" tries the family (:mod:`entourage.selection.auto`) on a held-out fifth of the
        sets and takes the best.
    loss : {"hinge", "logistic", "plackett_luce", "listnet"} or callable
        See :mod:`entourage.losses`.
    optimizer : {"adamw", "sgd"}
        "sgd" has Nesterov momentum, as in the paper.
    learning_rate : float
        After the warm-up.
    momentum : float
        Of "sgd".
    schedule : {"cosine", "constant"}
        How the learning rate goes on after the warm-up: down to 0, or as it is.
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
        Learn from sub-sets of so many objects, drawn afresh for every batch, instead of whole sets: for sets of
        thousands. A pair is the smallest and the largest size, of which each batch draws one: for a model that
        will meet sets of many sizes. Held-out sets are judged whole, and predictions are always of whole sets.
    subsets_per_set : int
        How many sub-sets to draw from each set in an epoch.
    clip : float, optional
        The largest norm of a gradient.
    ema : float, optional
        The decay of an exponential average of the weights, which is then used instead of the last
        weights; None for no average.
    validation : float
        The share of the sets held out to choose the best weights and to stop early, by their weights where there
        are such; 0 holds out none, and neither do fewer than 20 sets.
    evaluate_every : int, optional
        Steps between two looks at the held-out sets, and between checkpoints; by default a fortieth of
        all steps, and at an eighth, a quarter and half of that: few sets are soon learnt by heart.
    patience : int, optional
        Stop after so many looks without a better score.
    standardize : bool
        Whether features are brought to mean 0 and variance 1, by the training data. A feature that doesn't vary in
        them is left out, either way: nothing is known of what it does.
    members : int
        How many nets to train, at once, for an ensemble: their scores are averaged, and what they disagree on is
        uncertain (``predict_scores(X, return_std=True)``, `predict_pairs`).
    budget : float
        With "auto": the seconds after which no other net is tried.
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
        same data and settings, `fit` goes on with it, to the same end as if it had never been interrupted.
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
    tried_ : with "auto", what each net was worth
    history_ : a row (step, learning rate, loss, score) for each evaluation of the held-out sets; also "halves", the
        scores of two halves of them
    best_score_ : the best score on the held-out sets, None where none were held out. It chose the weights, so it is
        too high, the more so the fewer sets there are
    held_out_score_ : a score that didn't choose: each half of the held-out sets at the step that was best for the
        other half. None where none were held out
    n_features_in_, n_situation_features_in_ : how many features were seen
    feature_names_in_ : the columns that were learnt from, where it was a table
    n_steps_ : how many steps were trained
    interrupted_ : whether training was interrupted by Ctrl-C
    table_ : what turns tables into sets, where the model was fitted to a table; else None
    """

    _level_codes = True

    def __init__(
        self,
        net: Net | str | None = None,
        *,
        loss: str | Loss = "hinge",
        optimizer: str = "adamw",
        learning_rate: float = 0.003,
        momentum: float = 0.9,
        schedule: str = "cosine",
        warmup: float = 0.1,
        weight_decay: float = 0.1,
        l1: float = 0.0,
        l2: float = 0.0,
        steps: int = 4000,
        epochs: float | None = None,
        batch_size: int = 256,
        subset_size: int | tuple[int, int] | None = None,
        subsets_per_set: int = 1,
        clip: float | None = 1.0,
        ema: float | None = 0.999,
        validation: float = 0.1,
        evaluate_every: int | None = None,
        patience: int | None = 20,
        standardize: bool = True,
        members: int = 1,
        budget: float = 300.0,
        categories: Sequence[tuple[int, int]] | None = None,
        device: str = "auto",
        precision: str = "float32",
        compile: bool | str = "auto",
        checkpoint: str | os.PathLike[str] | None = None,
        on_interrupt: str = "raise",
        verbose: bool = False,
        random_state: int | np.random.Generator | np.random.RandomState | None = None,
    ) -> None:
        self.net = net
        self.loss = loss
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.schedule = schedule
        self.warmup = warmup
        self.weight_decay = weight_decay
        self.l1 = l1
        self.l2 = l2
        self.steps = steps
        self.epochs = epochs
        self.batch_size = batch_size
        self.subset_size = subset_size
        self.subsets_per_set = subsets_per_set
        self.clip = clip
        self.ema = ema
        self.validation = validation
        self.evaluate_every = evaluate_every
        self.patience = patience
        self.standardize = standardize
        self.members = members
        self.budget = budget
        self.categories = categories
        self.device = device
        self.precision = precision
        self.compile = compile
        self.checkpoint = checkpoint
        self.on_interrupt = on_interrupt
        self.verbose = verbose
        self.random_state = random_state

    # --- fitting --------------------------------------------------------------------------------

    def fit(
        self,
        X: AnySets,
        y: Any = None,
        *,
        situation: ArrayLike | Sequence[str] | None = None,
        sample_weight: ArrayLike | str | None = None,
        on_evaluation: Callable[[float], None] | None = None,
        **table: Unpack[TableColumns],
    ) -> Self:
        """Learn from sets and their targets, or from a long table: one row an object.

        Parameters
        ----------
        X : array of shape (n, m, d), list of (m, d) arrays, or Sets; or a pandas, polars or Arrow frame
        y : array of shape (n, m) or list of rows; None where ``X`` is Sets with targets, or a frame
        situation : array of shape (n, features of a set), optional
            Of a frame: the names of columns that are the same for all rows of a set.
        sample_weight : array of shape (n,), optional
            How much each set counts, in training, in what is held out and in what features are standardised by. A
            set of weight 0 is left out. Of a frame: also the name of a column.
        on_evaluation : callable, optional
            Told the score of the held-out sets after each evaluation. What it raises ends the training.
        set_id, target : str
            Of a frame: the columns that say which set a row belongs to, and what is known of it.
        target_kind : {"rank", "relevance", "choice", "subset"}
            Of a frame: what the target is; by default what this estimator learns.
        features, ignore : list of str, optional
            Of a frame: which columns are features (by default all that are nothing else), or which are not.
        missing : list of str
            Of a frame: texts that stand for a missing value, such as "---".
        """
        start = self._prepare(X, y, situation, sample_weight, table)
        judge = start.judge

        def told(scorer: Scorer) -> float:
            score: float = judge(scorer)  # type: ignore[misc]
            on_evaluation(score)  # type: ignore[misc]
            return score

        outcome = train(
            start.scorer,
            self._loss(),
            start.data,
            start.plan,
            evaluate=judge if judge is None or on_evaluation is None else told,
            checkpoint=self.checkpoint,
            fingerprint="" if self.checkpoint is None else self._fingerprint(start.sets, start.weights),
            progress=self.verbose,
        )
        return self._finish(start, outcome)

    def _prepare(
        self, X: Any, y: Any, situation: Any, sample_weight: Any, table: TableColumns | None = None
    ) -> "_Start":
        """Check everything and lay out what training needs."""
        check_choice("on_interrupt", self.on_interrupt, ["raise", "keep"])
        sets, weights, _ = self._check_training_data(X, y, situation, sample_weight, table=table)
        check_number("validation", self.validation, least=0, below=1)
        self._categories = self._categories_of(sets)
        seed = self._draw_seed(self.checkpoint)
        standardise = self._standardizer(sets, weights)
        net = self._find_net(sets, weights, seed)
        scorer = self._build(net, standardise, seed)
        training, held_out = self._hold_out(sets, seed)
        device = find_device(self.device)
        own = None if weights is None else weights[training]
        learnt = self.task.in_single_precision(sets)
        if sets.on_disk:
            situated = standardise.situations(learnt)
            data = self._resident(situated, device, own, only=training, on_batch=standardise.on_batch)
        else:
            data = self._resident(standardise(learnt[training]), device, own)
        plan = self._plan(data, seed, scorer)
        self._say_how_long(net, scorer.to(device), sets, device, plan.steps)
        return _Start(
            sets=sets,
            weights=weights,
            standardise=standardise,
            net=net,
            scorer=scorer,
            data=data,
            plan=plan,
            judge=None
            if held_out is None
            else self._judge(sets, held_out, standardise, weights, device, seed),
            held_out=held_out,
        )

    def _say_how_long(
        self, net: Net, scorer: Scorer, sets: Sets, device: torch.device, steps: int = 0
    ) -> None:
        """Warn of how long all pairs of large sets take, by timing a smaller one; with ``steps``, to train."""
        largest, timed = int(sets.sizes.max()), 1000
        if largest < LARGE_SET or not isinstance(net, FETA | SetAttention) or getattr(net, "points", None):
            return
        if steps and self.subset_size is not None:
            return
        objects = torch.zeros(1, timed, sets.n_features + sets.n_situation_features, device=device)
        with torch.no_grad():
            scorer.eval()(objects).sum().item()  # .item() waits for the device
            begin = time.perf_counter()
            scorer(objects).sum().item()
        seconds = time.perf_counter() - begin
        share = (largest / timed) ** 2 if steps else float(np.square(sets.sizes / timed).sum())
        work = (
            3 * steps * seconds * share if steps else seconds * share
        )  # backwards costs twice as much again
        what = f"Training for {steps:,} steps" if steps else "Scoring"
        way_out = (
            "SetAttention(points=32) looks at 32 summaries of the set instead of all pairs, in time that grows with "
            "the number of objects and not with its square; so does FATE()."
        )
        if steps:
            way_out += " Or learn from sub-sets: subset_size=100."
        warnings.warn(
            f"{type(net).__name__} looks at every pair of a set, and the largest here has {largest:,} objects, "
            f"{largest**2:,} pairs. {what} will take about {in_words(work)}. {way_out}",
            stacklevel=4,
        )

    def _finish(self, start: "_Start", outcome: Outcome) -> Self:
        if outcome.interrupted and self.on_interrupt == "raise":
            raise KeyboardInterrupt
        self._keep(start.net, start.scorer, start.standardise, outcome, seed=start.plan.seed, partial_fits=0)
        self._learnt_from(start.sets)
        if outcome.interrupted:
            best = outcome.best_score is not None
            kept = "the best weights so far are kept" if best else "the last weights are kept"
            resume = f"; fit again to go on from {self.checkpoint}" if self.checkpoint is not None else ""
            warnings.warn(
                f"Interrupted in step {outcome.steps} of {start.plan.steps}: {kept}{resume}.", stacklevel=3
            )
        return self

    def partial_fit(
        self,
        X: AnySets,
        y: Any = None,
        *,
        situation: ArrayLike | Sequence[str] | None = None,
        sample_weight: ArrayLike | str | None = None,
        **table: Unpack[TableColumns],
    ) -> Self:
        """Go once through these sets, from where the model is, at a constant learning rate.

        The first call starts a new model and standardises by its sets; of a table it also learns the columns, which
        later calls take as they are. Nothing is held out, and no weights are averaged. A pass that fails or is
        interrupted leaves the model as it was.
        """
        known = encoder_of(self) if hasattr(self, "scorer_") and is_frame(X) else None
        sets, weights, _ = self._check_training_data(
            X, y, situation, sample_weight, table=table, encoder=known
        )
        if hasattr(self, "scorer_"):
            self._check_features(sets)
            self._check_unchanged()
            self._categories = self.categories_
            net, seed, count, standardise = self.net_, self._seed, self._partial_fits, self._standardise
            state = self._optimizer_state if self._optimizer_kind == self.optimizer else None
            scorer = copy.deepcopy(self.scorer_)  # a pass that fails leaves the model as it was
        else:
            seed, count, state = self._draw_seed(), 0, None
            self._categories = self._categories_of(sets)
            standardise = self._standardizer(sets, weights, ignore_constant=False)  # more may come
            if isinstance(self.net, str):
                raise ParameterError("partial_fit can't choose a net: call fit first, or name one.")
            net = self._find_net(sets, weights, seed)
            scorer = self._build(net, standardise, seed)
        device = find_device(self.device)
        resident = self._resident(standardise(self.task.in_single_precision(sets)), device, weights)
        check_number("batch_size", self.batch_size, least=1, whole=True)
        plan = Plan(
            **self._common_plan(),
            steps=resident.n_batches(self.batch_size),
            evaluate_every=resident.n_batches(self.batch_size),
            schedule="constant",
            warmup=0.0,
            ema=None,
            patience=None,
            seed=int(np.random.default_rng([seed, count]).integers(2**62)),
        )
        outcome = train(
            scorer.to(device),
            self._loss(),
            resident,
            plan,
            optimizer_state=state,
            progress=self.verbose,
        )
        if outcome.interrupted:
            raise KeyboardInterrupt  # the model stays as it was before this pass
        if hasattr(self, "scorer_"):  # the story goes on
            earlier = self.n_steps_
            outcome.history = self.history_ + [
                row | {"step": row["step"] + earlier} for row in outcome.history
            ]
            outcome.steps += earlier
        first = not hasattr(self, "scorer_")
        self._keep(net, scorer, standardise, outcome, seed=seed, partial_fits=count + 1)
        if first:
            self._learnt_from(sets)
        return self

    def _check_unchanged(self) -> None:
        """See that a fitted model is still what its parameters say."""
        named = self.net is None or isinstance(self.net, str) or repr(self.net) == repr(self.net_)
        if not named or self.members != members_of(self.scorer_):
            raise ParameterError(
                f"This model was fitted as {members_of(self.scorer_)} × {self.net_!r}; its parameters say otherwise "
                "now. To go on, set them back; to start anew, call fit."
            )

    def _draw_seed(self, checkpoint: str | os.PathLike[str] | None = None) -> int:
        """Return the seed: the given one, that of the run found in ``checkpoint``, or one drawn."""
        if self.random_state is None or isinstance(
            self.random_state, np.random.Generator | np.random.RandomState
        ):
            if checkpoint is not None and checkpoint_file(checkpoint).exists():
                return read_seed(checkpoint_file(checkpoint))
            if isinstance(self.random_state, np.random.RandomState):
                return int(self.random_state.randint(2**31))
            return int(np.random.default_rng(self.random_state).integers(2**31))
        check_number("random_state", self.random_state, least=0, most=2**32 - 1, whole=True)
        return int(self.random_state)

    def _find_net(self, sets: Sets, weights: NDArray[np.float64] | None, seed: int) -> Net:
        """Return the net to build: the given one, or the best of the family."""
        if hasattr(self, "tried_"):
            del self.tried_
        net: Any = FATE() if self.net is None else self.net
        if isinstance(net, str) and net == "auto":
            return self._choose(sets, weights, seed)
        if not isinstance(net, Net):
            hint = f"; did you mean {net.__name__}()?" if isinstance(net, type) else "."
            raise ParameterError(f'net needs a net such as FATE() or FETA(), or "auto"; got {net!r}{hint}')
        return net

    def _build(self, net: Net, standardise: Standardizer, seed: int) -> Scorer:
        check_number("members", self.members, least=1, whole=True)
        categories = [(place, levels) for place, levels in self._categories]  # JSON has lists for tuples
        seeds = [seed, *np.random.default_rng([seed, 2**33]).integers(2**62, size=self.members - 1)]
        scorers = [
            build_with_categories(
                net, sum(standardise.n_features), categories, torch.Generator().manual_seed(int(own))
            )
            for own in seeds
        ]
        return scorers[0] if self.members == 1 else Stack(scorers)

    def _choose(self, sets: Sets, weights: NDArray[np.float64] | None, seed: int) -> Net:
        """Try the family, with these settings, and take the best."""
        automatic = provided("automatic choice of a net")

        if sets.on_disk or self.checkpoint is not None:
            what = (
                "Sets on disk are too large to try each net" if sets.on_disk else "A checkpoint is of one net"
            )
            raise ParameterError(f'{what}: name one instead of "auto".')

        def make(name: str) -> SetEstimator:
            model: SetEstimator = clone(self).set_params(
                net=clone(automatic.CANDIDATES[name]), random_state=seed
            )
            return model

        self.tried_ = automatic.choose_net(sets, make, seconds=self.budget, weights=weights)
        best: Net = automatic.CANDIDATES[self.tried_[0].name]
        return best

    def _categories_of(self, sets: Sets) -> list[tuple[int, int]]:
        """Which features are codes: as given, or as the table has them."""
        if self.categories is not None:
            found = [(place, levels) for place, levels in self.categories]
        else:
            found = [] if sets.encoder is None else list(sets.encoder.categories)
        for place, _ in found:
            check_number("the place of a category", place, least=0, below=sets.n_features, whole=True)
        return found

    def _standardizer(
        self, sets: Sets, weights: NDArray[np.float64] | None, *, ignore_constant: bool = True
    ) -> Standardizer:
        places = [place for place, _ in self._categories]
        return Standardizer.fit(
            sets, self.standardize, leave=places, weights=weights, ignore_constant=ignore_constant
        )

    def _resident(self, *args: Any, **kwargs: Any) -> Resident:
        """Lay out what to train on: whole sets, or sub-sets of them."""
        if self.subset_size is None:
            return Resident(*args, **kwargs)
        if not isinstance(self.task, Ranking):
            raise ParameterError(
                "subset_size is for rankings: a sub-set without the chosen object would say that nothing was chosen."
            )
        sizes = self.subset_size if isinstance(self.subset_size, Sequence) else [self.subset_size] * 2
        if len(sizes) != 2:
            raise ParameterError(
                f"subset_size needs a number or a pair, smallest and largest; got {self.subset_size!r}."
            )
        low, high = sizes
        check_number("subset_size", low, least=2, whole=True)
        check_number("subset_size", high, least=low, whole=True)
        check_number("subsets_per_set", self.subsets_per_set, least=1, whole=True)
        return SubsetResident(
            *args, **kwargs, subset_sizes=(int(low), int(high)), per_set=self.subsets_per_set
        )

    def _loss(self) -> Loss:
        return find_loss(self.loss, self.task.losses)

    def _hold_out(self, sets: Sets, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64] | None]:
        """Which sets to learn from, and which to judge by: only sets that have something to judge."""
        telling = np.flatnonzero(self.task.informative(sets))
        if not self.validation or len(telling) < FEWEST_TO_HOLD_OUT:
            return np.arange(len(sets)), None
        count = min(max(1, round(self.validation * len(sets))), len(telling) - 1)
        count = min(count, MOST_TO_HOLD_OUT) if sets.on_disk else count  # these are read into memory
        held_out = np.sort(np.random.default_rng([seed, 2**32]).permutation(telling)[:count])
        return np.setdiff1d(np.arange(len(sets)), held_out), held_out

    def _judge(
        self,
        sets: Sets,
        held_out: NDArray[np.int64],
        standardise: Standardizer,
        weights: NDArray[np.float64] | None,
        device: torch.device,
        seed: int,
    ) -> Judge:
        """Judge by held-out sets, as much as each weighs."""
        judged = sets[held_out]

        def values(scores: NDArray[Any]) -> NDArray[np.float64]:
            return metric_of_sets(self.task.criterion, judged, scores)

        return Judge(
            Resident(standardise(judged), device),
            values,
            self._scoring_precision(device),
            weights=None if weights is None else weights[held_out],
            seed=seed,
        )

    def _common_plan(self) -> dict[str, Any]:
        names = ["batch_size", "optimizer", "learning_rate", "momentum", "weight_decay", "l1", "l2", "clip"]
        return {name: getattr(self, name) for name in [*names, "precision"]}

    def _plan(self, data: Resident, seed: int, scorer: Scorer) -> Plan:
        check_number("batch_size", self.batch_size, least=1, whole=True)
        steps = self.steps
        if self.epochs is not None:
            check_number("epochs", self.epochs, above=0)
            steps = max(1, round(self.epochs * data.n_batches(self.batch_size)))
        check_number("steps", steps, least=1, whole=True)
        return Plan(
            **self._common_plan(),
            steps=steps,
            evaluate_every=max(1, steps // 40) if self.evaluate_every is None else self.evaluate_every,
            looks_early=self.evaluate_every is None,
            schedule=self.schedule,
            warmup=self.warmup,
            ema=self.ema,
            patience=self.patience,
            compile=self._compiles(data, steps, scorer),
            seed=seed,
        )

    def _compiles(self, data: Resident, steps: int, scorer: Scorer) -> bool:
        can = (
            scorer.stackable
            and not scorer.drops_out
            and data.uniform_size is not None
            and self.subset_size is None
        )
        if self.compile == "auto":
            return can and data.device.type == "cuda" and steps >= COMPILE_FROM
        if not isinstance(self.compile, bool):
            raise ParameterError(f'compile must be True, False or "auto"; got {self.compile!r}.')
        if self.compile and not can:
            raise ParameterError(
                "compile=True is for nets without dropout, whose work depends on shapes alone, on whole sets of one "
                'size. Leave it at "auto".'
            )
        return self.compile

    def _scoring_precision(self, device: torch.device) -> str:
        """In bfloat16 on a GPU only: elsewhere it saves nothing."""
        return self.precision if device.type == "cuda" else "float32"

    def _fingerprint(self, sets: Sets, weights: NDArray[Any] | None) -> str:
        """Tell this run from any other: its data and everything that shapes it."""
        digest = hashlib.sha256()
        for array in (sets.objects, sets.offsets, sets.targets, sets.situation, weights):
            content: Any = b"-" if array is None else np.ascontiguousarray(array)  # hashed without a copy
            digest.update(content)
        settings = [
            type(self).__name__,
            repr(self.net),
            loss_identity(self._loss()),
            self.validation,
            self.standardize,
            self._categories,
            self.members,
            self.subset_size,
            self.subsets_per_set,
        ]
        return digest.hexdigest() + repr(settings)

    def _keep(
        self,
        net: Net,
        scorer: Scorer,
        standardise: Standardizer,
        outcome: Outcome,
        *,
        seed: int,
        partial_fits: int,
    ) -> None:
        scorer.load_state_dict(outcome.weights)
        self.scorer_ = scorer.eval()
        self.net_ = clone(net)  # what scorer_ was built from
        self._seed, self._partial_fits, self._standardise = seed, partial_fits, standardise
        self._optimizer_state = {k: v.detach().cpu() for k, v in outcome.optimizer.items()}
        self._optimizer_kind = self.optimizer
        self.n_features_in_, self.n_situation_features_in_ = standardise.n_features
        self.categories_ = self._categories  # only now: a fit that fails leaves a fitted model as it was
        self.history_ = outcome.history
        self.best_score_ = outcome.best_score
        self.held_out_score_ = score_not_chosen_by(outcome.history)
        self.n_steps_ = outcome.steps
        self.interrupted_ = outcome.interrupted

    # --- predicting -----------------------------------------------------------------------------

    def _packed_scores(self, sets: Sets) -> NDArray[Any]:
        return self._scores_of(self.scorer_, sets)

    def _scores_of(self, scorer: Scorer, sets: Sets) -> NDArray[Any]:
        device = find_device(self.device)
        self._say_how_long(self.net_, scorer.to(device), sets, device)
        if sets.on_disk:
            data = Resident(self._standardise.situations(sets), device, on_batch=self._standardise.on_batch)
        else:
            data = Resident(self._standardise(sets), device)
        narrow = autocast(device, self._scoring_precision(device))
        with progress_bar("scoring", len(sets), self.verbose) as show, narrow:
            return predict_packed(scorer.to(device), data, show).cpu().numpy()

    def predict_scores(
        self, X: AnySets, *, situation: ArrayLike | None = None, return_std: bool = False
    ) -> Any:
        """Return the utility U(x, C) of each object; higher is better.

        What comes out has the form of what went in: an (n, m) array for an (n, m, d) array, a list of
        arrays for a list, a packed array for `Sets`, one number a row, in the order of the rows, for a table. Sets
        may have other sizes than those learnt from.

        With ``return_std`` also how far the members of an ensemble disagree: the standard deviation of the scores
        they give an object, once each member's scores of a set have mean 0 where only differences mean anything.
        """
        if not return_std:
            return super().predict_scores(X, situation=situation)
        given = given_sets(self._fitted(), X, situation)
        each = self._member_scores(given.sets)  # (members, objects)
        scores = given.back(self._checked_scores(given.sets))
        if self.task.only_differences:
            for _, rows in given.sets.by_size():
                each[:, rows] -= each[:, rows].mean(2, keepdims=True)
        return scores, given.back(each.std(0, ddof=1))

    def predict_pairs(self, X: AnySets, *, situation: ArrayLike | None = None) -> Any:
        """Return which share of the members of an ensemble put object i of a set above object j: ``(n, m, m)``.

        A tie counts one half. For sets of several sizes, a list of ``(m, m)`` arrays.
        """
        sets = given_sets(self._fitted(), X, situation).sets
        members = [sets.unpack(scores) for scores in self._member_scores(sets)]
        shares = [
            np.mean([(s[:, None] > s) + 0.5 * (s[:, None] == s) for s in own], axis=0)
            for own in zip(*members, strict=True)
        ]
        return shares if sets.uniform_size is None or isinstance(X, (list, tuple)) else np.stack(shares)

    def _member_scores(self, sets: Sets) -> NDArray[Any]:
        """Score with each member: (members, objects)."""
        self._check_fitted()
        if not isinstance(self.scorer_, Stack):
            raise ParameterError("One net alone doesn't disagree: fit an ensemble, Ranker(..., members=8).")
        self._check_features(sets)
        members = [self.scorer_.scorer(i) for i in range(self.scorer_.members)]
        return np.stack([self._scores_of(member, sets) for member in members])

    # --- keeping --------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that :func:`entourage.load` reads; see `entourage.training.tensor_file`."""
        self._check_fitted()
        model_file.write(path, "model", *describe(self))

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        if "scorer_" in state:  # so that a model trained on a GPU can be unpickled without one
            state = state | {"scorer_": copy.deepcopy(self.scorer_).cpu()}
        return state


def in_words(seconds: float) -> str:
    """Say how long something takes, roughly.

    Examples
    --------
    >>> in_words(3.2), in_words(250), in_words(9000)
    ('3 seconds', '4 minutes', '2.5 hours')
    """
    if seconds < 90:
        return f"{max(1, round(seconds))} second{'s' * (round(seconds) > 1)}"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


@dataclass
class _Start:
    """What training begins with."""

    sets: Sets
    weights: NDArray[Any] | None
    standardise: Standardizer
    net: Net
    scorer: Scorer
    data: Resident
    plan: Plan
    judge: Judge | None
    held_out: NDArray[np.int64] | None  # which sets these are
