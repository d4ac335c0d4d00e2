"""The figure of an assortment: the largest value of each size, or how often its objects are chosen."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from entourage.decisions.assortment import Assortment

__all__ = ["draw_assortment"]

INK = "#1c2430"
MARK = "#b3261e"


def draw_assortment(found: "Assortment") -> Any:
    """Draw the choice probabilities of the set and, where all sets were enumerated, the largest value of each size."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    names = [str(one) for one in (found.objects.tolist() if found.labels is None else found.labels)]
    shares = found.probabilities.tolist()
    if found.outside is not None:
        names, shares = [*names, "nothing"], [*shares, found.outside]
    sizes = sorted(found.by_size)
    panels = 2 if len(sizes) > 1 else 1
    height = max(2.6, 0.8 + 0.28 * len(names))
    figure = Figure(figsize=(4.6 * panels, min(height, 12)), dpi=140, layout="constrained")
    axes = figure.subplots(1, panels, squeeze=False)[0]
    axes[0].barh(names[::-1], shares[::-1], color=INK)
    axes[0].set_xlabel("choice probability")
    if panels == 2:
        axes[1].plot(sizes, [found.by_size[size] for size in sizes], "o-", color=INK)
        axes[1].plot([len(found.objects)], [found.value], "o", color=MARK, markersize=9)
        axes[1].set_xlabel("objects in the set")
        axes[1].set_ylabel(f"largest {found.objective}")
        axes[1].xaxis.set_major_locator(MaxNLocator(integer=True))
    return figure
