"""Votes in exactly the schema of the Arena's data sets of 100,000 and 140,000 votes, without the conversations."""

import numpy as np

CRITERIA = ("complexity", "creativity", "domain_knowledge", "problem_solving", "real_world", "specificity",
            "technical_accuracy")  # fmt: skip
#: Names of the Arena's flags, and where they are.
FLAGS = {
    "creative_writing": ("creative_writing_v0.1", "creative_writing"),
    **{name: ("criteria_v0.1", name) for name in CRITERIA},
    "if": ("if_v0.1", "if"),
    "math": ("math_v0.1", "math"),
}
COUNTS = {
    "header_count": ("h1", "h2", "h3", "h4", "h5", "h6"),
    "list_count": ("ordered", "unordered"),
    "bold_count": ("**", "__"),
}


def arena_votes(n=300, n_models=4, seed=0):
    """Rows as objects of JSON."""
    rng = np.random.default_rng(seed)
    return [_vote(rng, n_models, k) for k in range(n)]


def _vote(rng, n_models, k):
    first, second = (f"model-{x + 1}" for x in rng.choice(n_models, 2, replace=False))
    meta = {"turns": int(rng.integers(1, 4))}
    for side in "ab":
        meta[f"sum_assistant_{side}_tokens"] = int(rng.integers(0, 2000))
        meta[f"context_{side}_tokens"] = int(rng.integers(0, 2000))
        for name, keys in COUNTS.items():
            meta[f"{name}_{side}"] = {key: int(rng.poisson(0.4)) for key in keys}
    tags = {"creative_writing_v0.1": {"score": "no"}, "criteria_v0.1": {}, "if_v0.1": {"score": 3}, "math_v0.1": {}}
    for group, name in FLAGS.values():
        tags[group][name] = bool(rng.random() < 0.3)
    return {
        "id": f"vote-{k}", "model_a": first, "model_b": second,
        "winner": str(rng.choice(["model_a", "model_b", "tie", "both_bad"], p=[0.4, 0.3, 0.2, 0.1])),
        "evaluation_session_id": f"session-{k // 2}", "evaluation_order": 1, "conv_metadata": meta,
        "category_tag": tags, "language": str(rng.choice(["en", "pl"])), "is_code": bool(rng.random() < 0.3),
    }  # fmt: skip


def flags_of(row):
    """The categories of a vote."""
    return [name for name, (group, key) in FLAGS.items() if row["category_tag"][group][key]]
