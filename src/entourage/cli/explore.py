"""The command ``entourage explore``: a page in which a model runs live."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from entourage.cli.options import Decimal, Encoding, ModelPath, Sep, TablePath, csv_options, read_for
from entourage.cli.outputs import check_output

__all__ = ["explore"]


def explore(
    model: ModelPath,
    table: TablePath,
    out: Annotated[Path, typer.Option("-o", "--out", help="The page to write.")] = Path("explorer.html"),
    compare: Annotated[
        Path | None,
        typer.Option(
            help="A second model file, of the same columns, shown beside. By default the context-ablated control."
        ),
    ] = None,
    label: Annotated[str | None, typer.Option(help="The column that names the objects.")] = None,
    price: Annotated[
        str | None,
        typer.Option(help="A numeric column whose demand curve is shown first, and audited."),
    ] = None,
    sign: Annotated[int, typer.Option(help="Which way demand should move with --price: -1 or 1.")] = -1,
    most_sets: Annotated[
        int, typer.Option(min=1, help="The first so many sets of the table are shown.")
    ] = 300,
    sep: Sep = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf8",
) -> None:
    """Write a page in which people drag, change and remove objects, and see how the others' chances move.

    One HTML file that needs no server and no network: the model runs in the page. It holds the sets that it shows and
    the weights of the model. Needs the extra onnx. Example:

    entourage explore trips.entourage trips.csv --price cost --label mode -o explorer.html
    """
    check_output(out, table, model, *([] if compare is None else [compare]))

    from entourage import load
    from entourage.estimators.inputs import encoder_of
    from entourage.serving.explorer import explore as make_page

    csv = csv_options(sep, decimal, encoding)
    fitted = load(model)
    encoder_of(fitted, model)
    other = None if compare is None else load(compare)
    frame = read_for(fitted, table, csv, ids=[label])
    names = tuple(path.stem for path in (model, compare) if path is not None)
    page = make_page(
        fitted,
        frame,
        compare=other,
        label=label,
        price=price,
        sign=sign,
        title=f"{model.stem}: sets of {table.name}",
        names=names,
        most_sets=most_sets,
    )
    page.save(out)
    Console().print(f"{len(page.page) / 1e6:.1f} MB: {out}", soft_wrap=True, markup=False)
