"""Simulated panels of judges who judge the same answers in several runs."""

from jaxeval.lab.simulate.verdicts import simulate_anchored_verdicts

OUTCOME = {"win": 1.0, "tie": 0.5, "loss": 0.0}
NOISE = (0.2, 0.2, 0.3, 2.5)


def simulated(**options):
    options = {
        "strengths": (0.8, 0.0),
        "n_items": 60,
        "n_judges": 4,
        "n_runs": 4,
        "run_sd": NOISE,
        "seed": 2,
        **options,
    }
    return simulate_anchored_verdicts(**options)


def answers(frame):
    """(answers x runs) of each judge."""
    frame = frame.assign(outcome=frame["verdict"].map(OUTCOME))
    return {j: t.pivot_table("outcome", ["model", "item"], "run") for j, t in frame.groupby("judge")}
