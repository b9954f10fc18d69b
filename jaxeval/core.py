"""What needs NumPy and SciPy alone: exact tests, intervals, agreement and closed forms, on plain numbers and arrays.

It imports neither JAX nor pandas, and nothing at all before a name is used. These are the functions that the rest of
jaxeval computes with: `jaxeval.compare_scores` takes its p-values from `mcnemar` and `sign_flips`, its intervals from
`score_interval`. Functions of tables, such as `jaxeval.rogan_gladen` and `jaxeval.pass_at_k`, need pandas and no JAX.

Examples:
    >>> from jaxeval.core import holm, mcnemar, wilson
    >>> round(float(mcnemar(99, 163)), 6)
    9.2e-05
    >>> [round(float(end), 3) for end in wilson(0.7, 500, 0.95)]
    [0.658, 0.739]
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
"""

from jaxeval.lazy_names import lazy_names

_HOMES = {
    "scores.paired_tests": ["anytime_p", "mcnemar", "sign_flips", "student_p"],
    "statistics.clusters": ["cluster_factors", "design_effect", "effective_clusters", "wilson_share"],
    "statistics.p_values": ["benjamini_hochberg", "holm", "p_above", "p_of_equal_shares", "score_interval", "score_z"],
    "statistics.quantiles": ["exact_share", "student_quantile", "wilson"],
    "statistics.rater_agreement": ["calibration_error", "cohen_kappa", "coincidences", "krippendorff_alpha"],
}

__getattr__, __dir__, __all__ = lazy_names("jaxeval", _HOMES)
