"""Excel workbooks: every sheet becomes delimited text, which is then looked at as any other."""

import csv
import io
from itertools import islice

from elastic_core.data.reading.cell_text import format_cell


def sheets_as_csv(workbook: bytes, rows: int, columns: int) -> dict[str, bytes]:
    """Return the text of every sheet by its name, a line for every row, empty ones left out, with one more row or
    column than so many at most.

    A row of one filled cell stays so short: a title above the table, or a word below it. Raises whatever openpyxl does."""
    import openpyxl

    texts = dict[str, bytes]()
    for sheet in openpyxl.load_workbook(io.BytesIO(workbook), read_only=True, data_only=True).worksheets:
        text, width = io.StringIO(), min(sheet.max_column or 200, columns + 1)
        lines = csv.writer(text, lineterminator="\n")
        for row in islice(sheet.iter_rows(values_only=True, max_col=width), rows + 2):
            if row.count(None) == len(row):  # a cell far below the others has hundreds of thousands of them above it
                continue
            cells = [" ".join((format_cell(cell) or "").split()) for cell in row]
            filled = [at for at, cell in enumerate(cells, 1) if cell]
            lines.writerow(cells if len(filled) > 1 else cells[: max(filled, default=0)])
        texts[sheet.title] = text.getvalue().encode()
    return texts
