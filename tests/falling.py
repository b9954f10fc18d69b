"""The best falling curve: a naive twin."""

import numpy as np


def falling(y):
    """Pool neighbours that do not fall."""
    blocks = []
    for value in y:
        blocks.append([float(value), 1])
        while len(blocks) > 1 and blocks[-2][0] <= blocks[-1][0]:
            (a, n), (b, m) = blocks[-2:]
            blocks[-2:] = [[(a * n + b * m) / (n + m), n + m]]
    return np.repeat([value for value, _ in blocks], [n for _, n in blocks])
