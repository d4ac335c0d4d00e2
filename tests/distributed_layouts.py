"""Tables laid out over files in ways that tempt a reader to tear sets."""

from pyarrow import parquet


def lay_out(table, folder, files, groups):
    """Write a table to files of so many rows each, with row groups of so many rows; the rest goes into a last one."""
    folder.mkdir(parents=True, exist_ok=True)
    first = 0
    for number, rows in enumerate([*files, table.num_rows]):
        group = groups[number % len(groups)]
        parquet.write_table(table.slice(first, rows), folder / f"{number:04d}.parquet", row_group_size=group)
        first = min(table.num_rows, first + rows)
    return folder
