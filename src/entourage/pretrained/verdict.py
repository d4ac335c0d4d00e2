"""STUB of the instant verdict, of the form that it has in the pretrained net."""

from dataclasses import dataclass

__all__ = ["InstantVerdict"]


@dataclass(frozen=True)
class InstantVerdict:
    """What the pretrained net believes of the context in a table."""

    none: float
    share: float
    interval: tuple[float, float]
    effects: dict[str, float]

    def __str__(self) -> str:
        low, high = self.interval
        effects = ", ".join(f"{name} {p:.2f}" for name, p in self.effects.items())
        return (
            (
                f"no context with probability {self.none:.2f}; its share of the log-likelihood gain {self.share:.0%} "
                f"(90 %: {low:.0%} to {high:.0%}); {effects}"
            )
            .replace("%", " %")
            .replace("  %", " %")
        )
