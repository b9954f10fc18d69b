"""Rankings that tests share."""

import numpy as np
import pandas as pd

#: Turner, van Etten, Firth and Kosmidis (2020, DOI 10.1007/s00180-020-00959-3), on networks that are not connected.
TOY = ["A > B", "C > A", "A > D", "B > A", "B > C"]


def simulated(n, n_items=6, lengths=(2, 6), tied=0.3, seed=0, spread=1.0):
    """N rankings as lists, the items numbered; some have a tie of two or three items."""
    rng = np.random.default_rng(seed)
    theta = spread * np.random.default_rng(99).normal(size=n_items)
    found = []
    for _ in range(n):
        items = rng.choice(n_items, rng.integers(lengths[0], lengths[1] + 1), replace=False)
        order = items[np.argsort(-(theta[items] + rng.gumbel(size=len(items))))].tolist()
        if rng.random() < tied:
            at, size = rng.integers(len(order) - 1), rng.integers(2, 4)
            order[at : at + size] = [order[at : at + size]]
        found.append(order)
    return found


def levels(ranking):
    """A ranking as a list of its levels."""
    return [level if isinstance(level, list) else [level] for level in ranking]


def named(ranking):
    """A ranking as text, of items m0, m1 and so on."""
    return " > ".join(" = ".join(f"m{item}" for item in level) for level in levels(ranking))


def table(rankings, **columns):
    """A row a ranking."""
    return pd.DataFrame({"ranking": [named(ranking) for ranking in rankings], **columns})


def places(rankings, **columns):
    """A row a place, in any order; the columns are of rankings."""
    rows = [
        {"ranking": f"r{number}", "item": f"m{item}", "rank": rank, **{name: x[number] for name, x in columns.items()}}
        for number, ranking in enumerate(rankings)
        for rank, level in enumerate(levels(ranking), start=1)
        for item in level
    ]
    return pd.DataFrame(rows).sample(frac=1, random_state=0).reset_index(drop=True)
