"""A pool without processes that sends everything as processes would: pickled."""

import pickle
from concurrent.futures import Future

from entourage.training.parallel import Pool


def sent(thing):
    return pickle.loads(pickle.dumps(thing))  # noqa: S301 - our own


class PicklingPool(Pool):
    """What a worker gets is a copy, and so is what it returns; processes are tested in tests/training."""

    opened = 0

    def __init__(self, work, workers):
        super().__init__(sent(work), workers)
        PicklingPool.opened += workers > 1

    def submit(self, job):
        future = Future()
        future.set_result(sent(self.work(sent(job))))
        return future

    def close(self, *, cancel):
        pass
