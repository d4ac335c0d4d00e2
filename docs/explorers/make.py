"""Make the pages of docs/explorers.md.

python docs/explorers/make.py --out FOLDER             # of simulated data, by the models beside this file
python docs/explorers/make.py --out FOLDER --data D    # also of real data: their models are fitted on the way
python docs/explorers/make.py --train                  # fit the models beside this file again
python docs/explorers/make.py --out FOLDER --pictures  # also pictures of the pages, by Chromium, beside this file
"""

import argparse
import html
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from entourage import FATE, ContextFree, DiscreteChooser, Ranker, SetAttention, load
from entourage.data import make_hypervolume, make_medoid
from entourage.data.datasets.noguchi_stewart import load_noguchi_stewart
from entourage.data.synthetic.medoid import medoid_distances
from entourage.serving.explorer import Explorer, Preset, explore

HERE = Path(__file__).parent
ROOMS = ["Attic", "Bay", "Corner", "Duplex", "Economy", "Family"]
F1 = {
    "grid_num": "grid",
    "quali_gap_pct": "gap in qualifying, %",
    "driver_age": "age",
    "driver_starts_before": "starts before",
    "driver_mean_order_last5": "driver, last 5",
    "driver_season_points_before": "points before",
    "constructor_mean_order_last5": "team, last 5",
}


@dataclass(frozen=True)
class Page:
    """A page: how it is made and, of simulated data, how its model is fitted; real data are read from a folder."""

    title: str
    make: Callable[[str, Any], Explorer]
    fit: Callable[[], Any] | None = None


def fit_medoid() -> Ranker:
    """Fit FATE to the medoid task."""
    net = FATE(width=32, depth=2)
    return Ranker(net, steps=3000, random_state=0, device="cpu").fit(*make_medoid(10_000, random_state=0))


def medoid(title: str, model: Any) -> Explorer:
    """Show sets of the medoid task."""
    X = make_medoid(500, random_state=1)[0]
    whole, four = medoid_distances(X).argmin(1), medoid_distances(X[:, :4]).argmin(1)
    changes = (whole < 4) & (whole != four)
    seen = (model.predict_scores(X).argmax(1) == whole) & (model.predict_scores(X[:, :4]).argmax(1) == four)
    first = int(np.flatnonzero(changes & seen)[0])  # the model is right, with the fifth point and without
    shown = X[[first, *range(12)]]
    text = "Points are ranked by their distance to the medoid. Take the selected point off: the medoid is another."
    return explore(model, shown, title=title, presets=(Preset("The medoid changes", 0, 4, text),))


def fit_hypervolume() -> Ranker:
    """Fit FATE to hypervolume contributions."""
    net = FATE(width=32, depth=2)
    return Ranker(net, steps=2500, random_state=0, device="cpu").fit(
        *make_hypervolume(10_000, n_objects=8, random_state=0)
    )


def hypervolume(title: str, model: Any) -> Explorer:
    """Show sets of points by their hypervolume contributions."""
    sets = make_hypervolume(12, n_objects=8, random_state=1)[0]
    text = "A point is worth the volume that only it dominates. Drag another one beside the selected point: both lose."
    return explore(model, sets, title=title, presets=(Preset("A crowded front", 0, 0, text),))


def rooms(n_sets: int, seed: int) -> pa.Table:
    """Simulate choices of hotel rooms: the middle price is favoured, and nothing may be booked."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for i in range(n_sets):
        names = rng.permutation(ROOMS)[: rng.integers(3, 6)]
        size = rng.uniform(12, 40, len(names))
        price = np.round(40 + 3 * size + rng.normal(0, 15, len(names)))
        breakfast = rng.random(len(names)) < 0.5
        middle = np.abs(price - np.median(price)) / 30
        utility = 2.5 - 0.035 * price + 0.1 * size + 0.6 * breakfast - 0.9 * middle
        best = np.append(utility, 0.0) + rng.gumbel(size=len(names) + 1)
        rows += [
            {
                "guest": i,
                "room": str(name),
                "price": float(price[j]),
                "size, m²": round(float(size[j]), 1),
                "breakfast": bool(breakfast[j]),
                "booked": int(j == best.argmax()),
            }
            for j, name in enumerate(names)
        ]
    return pa.Table.from_pylist(rows)


def fit_assortment() -> DiscreteChooser:
    """Fit FATE to simulated bookings."""
    chooser = DiscreteChooser(
        FATE(width=16), outside=True, steps=1500, random_state=0, device="cpu", monotone={"price": -1}
    )
    return chooser.fit(rooms(4000, seed=0), set_id="guest", target="booked", ignore=["room"])


def assortment(title: str, model: Any) -> Explorer:
    """Show what rooms to offer."""
    text = (
        "Guests favour the middle price. Take the selected room off, or change its price, and see who gains."
    )
    table = rooms(12, seed=1)
    return explore(
        model,
        table,
        label="room",
        price="price",
        title=title,
        presets=(Preset("The middle price", 0, 0, text),),
    )


def menus(title: str, data: Path) -> Explorer:
    """Fit FATE to people's choices among three products, and show three menus of each effect."""
    found = load_noguchi_stewart(data / "noguchi_stewart_2014")
    sets = found.sets
    rows = np.repeat(np.arange(len(sets)), sets.sizes)  # the trial of each alternative
    table = pa.table(
        {
            "trial": rows,
            "alternative": found.alternative,
            "first attribute": sets.objects[:, 0].astype(np.float64),
            "second attribute": sets.objects[:, 1].astype(np.float64),
            "chosen": (np.asarray(sets.targets) == 0).astype(np.int64),
        }
    )
    options = {"steps": 600, "random_state": 0, "device": "cpu"}
    columns = {"set_id": "trial", "target": "chosen", "ignore": ["alternative"]}
    model = DiscreteChooser(FATE(width=16), **options).fit(table, **columns)
    alone = DiscreteChooser(ContextFree(width=16), **options).fit(table, **columns)
    said = {
        "attraction": ("Da", 1, "Da is worse than A in both attributes: its presence helps A against B."),
        "compromise": (
            "Ca",
            1,
            "Beside the extreme Ca, A is the compromise: its presence helps A against B.",
        ),
        "similarity": (
            "Sa",
            -1,
            "Sa is much like A and takes choices from it: its presence helps B against A.",
        ),
    }
    shown: list[int] = []
    presets = []
    for effect, (third, sign, text) in said.items():
        firsts = {}  # of each product, the first trial in which the model has the effect
        for i in np.flatnonzero(found.effect == effect).tolist():
            own = np.flatnonzero(rows == i)
            names = found.alternative[own].tolist()
            if (
                third in names
                and found.choiceset[i] not in firsts
                and sign * shift(model, table, own, names) > 0.1
            ):
                firsts[found.choiceset[i]] = i
            if len(firsts) == 3:
                break
        first = next(iter(firsts.values()))
        selected = found.alternative[rows == first].tolist().index(third)
        presets.append(Preset(effect.capitalize(), len(shown), selected, f"{text} Take it off and see."))
        shown += firsts.values()
    taken = table.take(np.concatenate([np.flatnonzero(rows == i) for i in shown]))
    return explore(
        model,
        taken,
        compare=alone,
        label="alternative",
        names=("FATE", "context-free"),
        title=title,
        presets=tuple(presets),
    )


def shift(model: DiscreteChooser, table: pa.Table, own: Any, names: list[str]) -> float:
    """Return by how much the third alternative shifts the log-odds of A against B."""
    pair = [names.index(one) for one in "AB"]
    three = model.predict_scores(table.take(own))[pair]
    two = model.predict_scores(table.take(own[pair]))
    return float((three[0] - three[1]) - (two[0] - two[1]))


def formula_1(title: str, data: Path) -> Explorer:
    """Fit SetAttention to the races of 2000 to 2018, and show the last season."""
    every = pyarrow.csv.read_csv(data / "f1_races" / "f1_race_results_1950_on.csv.gz")
    every = every.filter(pc.greater_equal(every["year"], 2000))
    every = every.sort_by([("year", "ascending"), ("round", "ascending"), ("grid_num", "ascending")])
    name = pc.binary_join_element_wise(every["year"].cast(pa.string()), every["grand_prix"], " ")
    columns = {own: every[column].cast(pa.float64()) for column, own in F1.items()}
    table = pa.table({"race": name, "driver": every["driver"], **columns, "order": every["order"]})
    early = pc.less_equal(every["year"], 2018)
    options = {"steps": 300, "batch_size": 32, "random_state": 0, "device": "cpu"}
    about = {"set_id": "race", "target": "order", "ignore": ["driver"]}
    model = Ranker(SetAttention(width=32, rounds=2, features="linear"), **options).fit(
        table.filter(early), **about
    )
    alone = Ranker(ContextFree(width=32), **options).fit(table.filter(early), **about)
    last = table.filter(pc.equal(every["year"], pc.max(every["year"])))
    names = ("SetAttention", "context-free")
    text = "Learnt from 2000 to 2018. Change the grid position of the selected driver, or take him off."
    return explore(
        model,
        last,
        compare=alone,
        label="driver",
        names=names,
        title=title,
        presets=(Preset("The first race", 0, 0, text),),
    )


PAGES = {
    "medoid": Page("The medoid task: FATE", medoid, fit_medoid),
    "hypervolume": Page("Hypervolume contributions: FATE", hypervolume, fit_hypervolume),
    "assortment": Page("Hotel rooms (simulated): FATE", assortment, fit_assortment),
    "menus": Page("Attraction, compromise, similarity (Noguchi and Stewart 2014, CC BY 4.0): FATE", menus),
    "formula1": Page("Formula 1 (F1DB, CC BY 4.0): SetAttention", formula_1),
}


def take_pictures(folder: Path, names: list[str]) -> None:
    """Take a picture of each page after its first button was pressed."""
    from PIL import Image
    from playwright.sync_api import sync_playwright

    with sync_playwright() as engine:
        chromium = engine.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for name in names:
            file = HERE / f"{name}.png"
            tab = chromium.new_page(viewport={"width": 1280, "height": 900})
            tab.goto((folder / f"{name}.html").resolve().as_uri(), timeout=60_000)
            tab.locator("#presets button").first.click(timeout=60_000)
            tab.wait_for_timeout(5000)  # influence is found after the scores
            tab.screenshot(path=file)
            tab.close()
            with Image.open(file) as large:
                small = large.convert("RGB").resize((960, 675), Image.Resampling.LANCZOS).quantize(96)
            small.save(file, optimize=True)
        chromium.close()


def main() -> None:
    """Read the options, and make what they ask for."""
    parser = argparse.ArgumentParser(description="Make the pages of docs/explorers.md.")
    parser.add_argument("--out", type=Path, help="the folder for the pages")
    parser.add_argument("--data", type=Path, help="the folder of real data")
    parser.add_argument("--only", nargs="+", choices=PAGES, default=list(PAGES), help="some of the pages")
    parser.add_argument("--train", action="store_true", help="fit the models beside this file again")
    parser.add_argument(
        "--pictures", action="store_true", help="also take a picture of each page that was made"
    )
    asked = parser.parse_args()
    if asked.pictures and asked.out is None:
        parser.error("--pictures are taken of the pages in --out FOLDER, and there is no --out")
    links, made_here = [], []
    for name in asked.only:
        page, file = PAGES[name], HERE / f"{name}.entourage"
        if asked.train and page.fit is not None:
            page.fit().save(file)
        if asked.out is None or (page.fit is None and asked.data is None):
            continue
        made = page.make(page.title, asked.data if page.fit is None else load(file))
        asked.out.mkdir(parents=True, exist_ok=True)
        made.save(asked.out / f"{name}.html")
        links.append(f'<li><a href="{name}.html">{html.escape(page.title)}</a>')
        made_here.append(name)
        print(f"{asked.out / name}.html, {len(made.page) / 1e6:.1f} MB")
    if links:
        head = '<!doctype html><html lang="en"><meta charset="utf-8"><title>Explorers</title><h1>Explorers</h1><ul>'
        (asked.out / "index.html").write_text(head + "\n".join(links) + "</ul>")
    if asked.pictures:
        take_pictures(asked.out, made_here)


if __name__ == "__main__":
    main()
