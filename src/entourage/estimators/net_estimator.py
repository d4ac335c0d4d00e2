"""What all estimators of nets share: scikit-learn estimators that join a net, a task and the training loop."""

import copy
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Self, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from torch import Tensor

from entourage.data.encoder import TableColumns
from entourage.data.sets import AnySets, Sets, is_frame
from entourage.errors import ParameterError, check_choice, check_number
from entourage.estimators.blend import Blend
from entourage.estimators.calibration import Calibration
from entourage.estimators.inputs import encoder_of
from entourage.estimators.members import MembersPredictor
from entourage.estimators.model_file import (
    describe_net_estimator,
    members_of,
    net_estimator_from,
    save_net_estimator,
)
from entourage.estimators.monotone import find_signs
from entourage.estimators.plugins import automatic
from entourage.estimators.pretrained_net import (
    check_pretrained,
    draw_reference,
    is_pretrained,
    read_sets,
    scores_held_out,
    scores_of_reading,
)
from entourage.estimators.scoring import score_sets
from entourage.estimators.setup import (
    Categories,
    Start,
    build_scorer,
    categories_of,
    check_net,
    check_same_everywhere,
    check_same_sets,
    draw_seed,
    fingerprint_of,
    one_pass_plan,
    prepare,
    resident_of,
    view_of,
)
from entourage.nets import Net, Scorer
from entourage.pretrained import Reading
from entourage.tasks.losses import Loss
from entourage.training.device import find_device
from entourage.training.held_out import score_not_chosen_by, with_callback
from entourage.training.loop import Outcome, train
from entourage.training.processes import processes_here
from entourage.training.view import View

__all__ = ["NetEstimator"]


class NetEstimator(MembersPredictor):
    """What all estimators of a net share; they differ by their task. See :class:`entourage.Ranker`."""

    level_codes = True
    position_effects_: dict[Any, float] | None = None
    tried_: list[Any]
    history_: list[dict[str, Any]]
    blend_: Blend | None = None  # with "auto", instead of a net
    reading_: Reading | None = None  # with "pretrained", instead of a net
    reference_: Sets | None = None  # of its context-ablated control
    n_labelled_sets_: int
    calibration_: Calibration | None = None

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
        standardize: bool | str = True,
        relative: bool | str | Sequence[str | int] = False,
        monotone: Mapping[str | int, int] | None = None,
        members: int = 1,
        budget: float = 300.0,
        workers: int = 1,
        fine_tune: bool = False,
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
        self.relative = relative
        self.monotone = monotone
        self.members = members
        self.budget = budget
        self.workers = workers
        self.fine_tune = fine_tune
        self.categories = categories
        self.device = device
        self.precision = precision
        self.compile = compile
        self.checkpoint = checkpoint
        self.on_interrupt = on_interrupt
        self.verbose = verbose
        self.random_state = random_state

    @property
    def learns_position(self) -> bool:
        """Whether `fit` learns an effect of positions: of all nets but the pretrained one."""
        return not is_pretrained(self)

    @property
    def _words(self) -> str:
        return f'{type(self).__name__}("pretrained")' if is_pretrained(self) else type(self).__name__

    # --- fitting --------------------------------------------------------------------------------

    def fit(
        self,
        X: AnySets,
        y: Any = None,
        *,
        situation: ArrayLike | Sequence[str] | None = None,
        sample_weight: ArrayLike | str | None = None,
        groups: ArrayLike | str | None = None,
        on_evaluation: Callable[[Any], None] | None = None,
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
            How much each set counts: in training, in the held-out score and in the standardisation of features. A set
            of weight 0 is left out. Of a frame: also the name of a column.
        groups : array of shape (n,), optional
            Sets of one group, such as a person, are not parted: all are held out for early stopping, or none. Of a
            frame: also the name of a column, which is then no feature.
        on_evaluation : callable, optional
            Called with the score of the held-out sets after each evaluation; with "auto", with each candidate (an entry
            of ``tried_``) as it is done. An error that it raises ends the training.
        set_id, target : str
            Of a frame: the columns of the set id and of the target.
        target_kind : {"rank", "relevance", "choice", "subset"}
            Of a frame: what the target is; by default what this estimator learns.
        features, ignore : list of str, optional
            Of a frame: which columns are features (by default all without another role), or which are not.
        missing : list of str
            Of a frame: texts that stand for a missing value, such as "---".
        position : str, or array of shape (n, m) or list of rows, optional
            Where each object was shown, on a screen or in a list: whole numbers or text. Of a frame: a column, which
            is then no feature. Each position has an effect that is added to the utility in training, and left out in
            predictions, which need no positions; ``position_effects_`` holds them.
        """
        pretrained = is_pretrained(self)
        if processes_here().several and (pretrained or self.net == "auto"):
            raise ParameterError(
                f'Several processes train one net together: name it, such as "fate"; {self.net!r} is fitted by one '
                "process."
            )
        if self.fine_tune and not pretrained:
            raise ParameterError('fine_tune belongs to net="pretrained". Leave it out, or name that net.')
        if pretrained or (isinstance(self.net, str) and self.net == "auto"):
            checked = self._check_training_data(X, y, situation, sample_weight, groups, table=table)
            return self._read(*checked) if pretrained else self._fit_blend(*checked, on_evaluation)
        start = self.prepare(X, y, situation, sample_weight, table, groups)
        check_same_everywhere(self, start)
        evaluate: Callable[[Scorer], float] | None = start.evaluation
        if start.evaluation is not None and on_evaluation is not None:
            evaluate = with_callback(start.evaluation, on_evaluation)
        outcome = train(
            start.scorer,
            self.task.find_loss(self.loss),
            start.data,
            start.plan,
            evaluate=evaluate,
            checkpoint=self.checkpoint,
            fingerprint="" if self.checkpoint is None else fingerprint_of(self, start),
            progress=self.verbose and processes_here().first,
        )
        return self.finish(start, outcome)

    def prepare(
        self,
        X: Any,
        y: Any,
        situation: Any,
        sample_weight: Any,
        table: TableColumns | None = None,
        groups: Any = None,
    ) -> Start:
        """Check everything and lay out what training needs."""
        check_choice("on_interrupt", self.on_interrupt, ["raise", "keep"])
        sets, weights, labels = self._check_training_data(X, y, situation, sample_weight, groups, table=table)
        check_number("validation", self.validation, least=0, below=1)
        categories_of(self, sets)  # says what is wrong with them before any net is tried
        seed = draw_seed(self.random_state, self.checkpoint)
        return prepare(self, check_net(self.net), sets, weights, seed, labels)

    def finish(self, start: Start, outcome: Outcome) -> Self:
        """Keep the results of training; warn where it was interrupted."""
        if outcome.interrupted and self.on_interrupt == "raise":
            raise KeyboardInterrupt
        scorer, self.position_effects_ = start.scorer, None
        if start.positions is not None:
            scorer, outcome, self.position_effects_ = start.positions.apart(scorer, outcome)
        self.keep(
            start.net,
            scorer,
            start.view,
            start.categories,
            outcome,
            seed=start.plan.seed,
            partial_fits=0,
        )
        self._learnt_from(start.sets)
        if outcome.interrupted:
            best = outcome.best_score is not None
            kept = "the best weights so far are kept" if best else "the last weights are kept"
            resume = f"; fit again to resume from {self.checkpoint}" if self.checkpoint is not None else ""
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
        """Train for one epoch on these sets, from the present weights, at a constant learning rate.

        The first call starts a new model and standardises features by its sets; of a table it also learns the columns,
        which later calls keep. Nothing is held out, and no weights are averaged. A pass that fails or is
        interrupted leaves the model as it was.
        """
        if isinstance(self.net, str) and self.net == "auto":
            raise ParameterError("partial_fit trains one net: name it, instead of auto.")
        if is_pretrained(self):
            raise ParameterError(
                "The pretrained net is not trained on batches: call fit with all labelled sets, which it only reads."
            )
        known = encoder_of(self) if hasattr(self, "scorer_") and is_frame(X) else None
        sets, weights, _ = self._check_training_data(
            X, y, situation, sample_weight, table=table, encoder=known
        )
        if sets.position is not None:
            raise ParameterError("Positions are learnt by fit alone; leave position out in partial_fit.")
        check_same_sets(sets, weights)
        if hasattr(self, "scorer_"):
            self._check_features(sets)
            self._check_unchanged(sets)
            categories, net, view = self.categories_, self.net_, self.view_
            seed, count = self.seed_, self.n_partial_fits_
            state = self.optimizer_state_ if self.optimizer_kind_ == self.optimizer else None
            scorer = copy.deepcopy(self.scorer_)  # a pass that fails leaves the model as it was
        else:
            seed, count, state = draw_seed(self.random_state), 0, None
            categories = categories_of(self, sets)
            view = view_of(self, sets, weights, categories, ignore_constant=False)  # more may come
            net = check_net(self.net)
            scorer = build_scorer(self, net, view, categories, seed)
        device = find_device(self.device)
        resident = resident_of(self, view(self.task.in_single_precision(sets)), device, weights)
        outcome = train(
            scorer.to(device),
            self.task.find_loss(self.loss),
            resident,
            one_pass_plan(self, resident, seed, count),
            optimizer_state=state,
            progress=self.verbose,
        )
        if outcome.interrupted:
            raise KeyboardInterrupt  # the model stays as it was before this pass
        if hasattr(self, "scorer_"):  # the history continues
            earlier = self.n_steps_
            outcome.history = self.history_ + [
                row | {"step": row["step"] + earlier} for row in outcome.history
            ]
            outcome.steps += earlier
        first = not hasattr(self, "scorer_")
        self.keep(net, scorer, view, categories, outcome, seed=seed, partial_fits=count + 1)
        if first:
            self._learnt_from(sets)
        return self

    def _check_unchanged(self, sets: Sets) -> None:
        """Check that the parameters of a fitted model have not changed."""
        named = self.net is None or repr(check_net(self.net)) == repr(self.net_)
        named = named and find_signs(self.monotone, sets, self.categories_) == self.view_.monotone
        if not named or self.members != members_of(self.scorer_):
            raise ParameterError(
                f"This model was fitted as {members_of(self.scorer_)} × {self.net_!r}; its parameters have changed "
                "since. To continue, set them back; to start anew, call fit."
            )

    def _fit_blend(
        self,
        sets: Sets,
        weights: NDArray[np.float64] | None,
        groups: Any,
        on_evaluation: Callable[[Any], None] | None,
    ) -> Self:
        """Fit a blend of the best models there are: ``net="auto"``."""
        if sets.on_disk or self.checkpoint is not None:
            what = "Sets on disk are too large for it" if sets.on_disk else "A checkpoint is of one net"
            raise ParameterError(f'"auto" fits many models. {what}: name a net instead.')
        seed = draw_seed(self.random_state)
        tell = partial(print, flush=True) if self.verbose else lambda said: None
        found = automatic().fit_blend(
            self,
            sets,
            groups=groups,
            weights=weights,
            random_state=seed,
            on_plan=tell,
            on_try=on_evaluation or tell,
        )
        self._forget()
        self.blend_, self.tried_, self.seed_ = found.blend, found.tried, seed
        self.categories_ = list(found.blend.categories)
        self.best_score_, self.held_out_score_ = found.best_score, found.held_out_score
        self._learnt_from(sets)
        self._learn_from_held_out(found.sets, found.scores, found.weights)
        return self

    def _read(self, sets: Sets, weights: NDArray[np.float64] | None, groups: Any) -> Self:
        """Read the labelled sets with the pretrained net, and calibrate by sets held out from readings of others."""
        check_pretrained(self, sets)
        categories, seed = categories_of(self, sets), draw_seed(self.random_state)
        given: Any = self.task, sets, weights, categories
        how: dict[str, Any] = {"fine_tune": self.fine_tune, "seed": seed, "device": self.device}
        reading = read_sets(*given, groups=groups, tell=_tell if self.verbose else None, **how)
        ablated, held_out = self.net == "pretrained_ablated", None
        if self.validation:
            held_out = scores_held_out(*given, groups=groups, ablated=ablated, **how)
        reference = draw_reference(sets, seed) if ablated else None
        self.keep_reading(reading, categories, seed=seed, labelled_sets=len(sets), reference=reference)
        self._learnt_from(sets)
        if held_out is not None:
            self._learn_from_held_out(*held_out)
        return self

    def keep_reading(
        self,
        reading: Reading,
        categories: Categories,
        *,
        seed: int,
        labelled_sets: int,
        reference: Sets | None = None,
    ) -> None:
        """Keep what the pretrained net has read."""
        self._forget()
        self.reading_, self.reference_, self.calibration_ = reading, reference, None
        self.categories_, self.seed_, self.n_labelled_sets_ = categories, seed, labelled_sets
        self.history_, self.n_steps_ = [], 0
        self.best_score_ = self.held_out_score_ = None

    def _forget(self) -> None:
        """Forget an earlier fit."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _learn_from_held_out(
        self, sets: Sets, scores: NDArray[Any], weights: NDArray[np.float64] | None
    ) -> None:
        """Learn what else there is from sets that were held out, and their scores."""

    def keep(
        self,
        net: Net,
        scorer: Scorer,
        view: View,
        categories: Categories,
        outcome: Outcome,
        *,
        seed: int,
        partial_fits: int,
    ) -> None:
        """Keep the results of training."""
        for name in ("blend_", "tried_", "reading_", "reference_"):
            self.__dict__.pop(name, None)  # of an earlier fit
        scorer.load_state_dict(outcome.weights)
        self.scorer_ = scorer.eval()
        self.net_ = clone(net)  # what scorer_ was built from
        self.seed_, self.n_partial_fits_, self.view_ = seed, partial_fits, view
        self.optimizer_state_ = {k: v.detach().cpu() for k, v in outcome.optimizer.items()}
        self.optimizer_kind_ = self.optimizer
        self.n_features_in_, self.n_situation_features_in_ = view.n_features
        self.categories_ = categories
        self.calibration_ = None  # that of other weights would be wrong
        self.history_ = outcome.history
        self.best_score_ = outcome.best_score
        self.held_out_score_ = score_not_chosen_by(outcome.history)
        self.n_steps_ = outcome.steps
        self.interrupted_, self.out_of_time_ = outcome.interrupted, outcome.out_of_time

    # --- predicting -----------------------------------------------------------------------------

    def _packed_scores(self, sets: Sets) -> NDArray[Any]:
        if self.blend_ is not None:
            return self.blend_.scores(sets, self.device)
        if self.reading_ is not None:
            return scores_of_reading(
                self.reading_,
                self.task,
                sets,
                self.categories_,
                device=self.device,
                reference=self.reference_,
            )
        return self._scores_of(self.scorer_, sets)

    def _scores_of(self, scorer: Scorer, sets: Sets) -> NDArray[Any]:
        how: dict[str, Any] = {"device": self.device, "precision": self.precision, "verbose": self.verbose}
        return score_sets(self.net_, scorer, self.view_, sets, **how)

    # --- keeping --------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that :func:`entourage.load` reads."""
        self._check_fitted()
        save_net_estimator(self, path)

    def describe(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """Return what a file holds of the model: the JSON content, and the tensors."""
        return describe_net_estimator(self)

    @classmethod
    def from_file(cls, content: dict[str, Any], tensors: dict[str, Tensor]) -> "NetEstimator":
        """Restore the model that a file holds."""
        return net_estimator_from(cls, content, tensors)

    def __getstate__(self) -> dict[str, Any]:
        state: dict[str, Any] = super().__getstate__()
        if "scorer_" in state:  # so that a model trained on a GPU can be unpickled without one
            state = state | {"scorer_": copy.deepcopy(self.scorer_).cpu()}
        return state


def _tell(said: str) -> None:
    """Say it on the error stream, as progress bars do: the output may be JSON."""
    print(said, file=sys.stderr, flush=True)
