"""What Prometheus is told: requests, their time, passes and what they hold, queues, loads of models, the process."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

__all__ = ["Metrics"]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_COUNTS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Metrics:
    """The metrics of one app, in a registry of its own.

    Examples
    --------
    >>> metrics = Metrics()
    >>> metrics.count("/v1/predict", 200, 0.002)
    >>> b'entourage_requests_total{route="/v1/predict",status="200"} 1.0' in metrics.render()
    True
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self._requests = Counter(
            "entourage_requests", "Requests that were answered.", ["route", "status"], registry=self._registry
        )
        self._seconds = Histogram(
            "entourage_request_seconds",
            "Seconds until a request was answered.",
            ["route"],
            buckets=_SECONDS,
            registry=self._registry,
        )
        self._batches = Histogram(
            "entourage_batch_requests",
            "Requests that shared a forward pass.",
            ["model"],
            buckets=_COUNTS,
            registry=self._registry,
        )
        self._sets = Counter("entourage_sets", "Sets that were scored.", ["model"], registry=self._registry)
        self._waiting = Gauge(
            "entourage_waiting_requests",
            "Requests that wait for a model.",
            ["model"],
            registry=self._registry,
        )
        self._loads = Counter(
            "entourage_reloads", "Reloads of a model.", ["model", "outcome"], registry=self._registry
        )
        self._unfamiliar = Counter(
            "entourage_unfamiliar_values",
            "Values that the model never saw: a level that is not its own, a number missing that never was.",
            ["model", "column", "kind"],
            registry=self._registry,
        )
        self._known: dict[tuple[str, int], tuple[Counter, Histogram]] = {}

    def count(self, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered."""
        known = self._known.get((route, status))
        if known is None:
            known = self._requests.labels(route, str(status)), self._seconds.labels(route)
            self._known[route, status] = known
        known[0].inc()
        known[1].observe(seconds)

    def on_batch(self, model: str) -> Callable[[int, int], None]:
        """Return what is told of each pass of a model."""
        batches, sets = self._batches.labels(model), self._sets.labels(model)

        def told(n_requests: int, n_sets: int) -> None:
            batches.observe(n_requests)
            sets.inc(n_sets)

        return told

    def on_unfamiliar(self, model: str) -> Callable[[str, str, int], None]:
        """Return what is told of values that a model never saw."""
        return lambda column, kind, count: self._unfamiliar.labels(model, column, kind).inc(count)

    def watch(self, model: str, waiting: Callable[[], float]) -> None:
        """Ask for the length of the queue of a model whenever metrics are read."""
        self._waiting.labels(model).set_function(waiting)

    def count_reload(self, model: str, outcome: str) -> None:
        """Count a reload: "loaded" or "failed"."""
        self._loads.labels(model, outcome).inc()

    def render(self) -> bytes:
        """Return all metrics as text."""
        return generate_latest(self._registry)
