"""Writes the pages of the API reference: every public name, in groups, with what its docstring says."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx

import jaxeval
from jaxeval import plots

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "reference"

#: Title, what it is for, and the modules of `jaxeval` (or packages) whose public names it has. A name goes to the group
#: that names the most of its module's path.
GROUPS = [
    ("Votes and other data", "Read, check, count and keep what people and judges said.", ["data"]),
    ("Boards", "Ratings of votes and rankings, with intervals from resamples, ranks and tiers.", ["ratings"]),
    (
        "Covariates and ties",
        "Style control, the advantage of a side, and what a tie is.",
        ["data.features", "ratings.contextual_fit", "ratings.contextual_bootstrap", "ratings.style_effect",
         "ratings.tie_comparison"],
    ),
    (
        "Boards compared",
        "Who moved between two boards, and by how much.",
        ["ratings.board_comparison", "ratings.compare_boards"],
    ),
    ("Can a board be believed?", "How few votes decide, whether the model fits, who votes, and drift.", ["audits"]),
    ("What to judge next", "The battles that tell most, and how many votes a question takes.", ["planning"]),
    ("Scores on items", "Benchmarks: models, items, trials, and paired comparisons of models.", ["scores"]),
    (
        "Accuracy by judges",
        "Accuracies of models by imperfect judges, corrected by labels of people.",
        ["accuracy"],
    ),
    (
        "People and judges",
        "Whether judges agree with people, few votes beside many verdicts, and panels without people.",
        ["agreement", "data.verdict_rows", "ratings.panel_ratings", "ratings.prediction_powered"],
    ),
    ("Ratings from judges' scores", "Soft-Elo: judges' scores on the scale of people's votes.", ["softelo"]),
    ("Ratings against a reference", "Wins, ties and losses against a fixed reference model.", ["anchored"]),
    (
        "Benchmarks of benchmarks",
        "Whether an evaluator ranks models as people do, and which references a ranking needs.",
        ["evaluators", "references"],
    ),
    (
        "Draws, tables and files",
        "Joint draws of any estimator, and what is written for others.",
        ["statistics", "data.saved_draws", "tables", "data.model_tables"],
    ),
    ("Simulated data", "Data whose truth is known.", ["data.simulate", "accuracy.simulation"]),
    ("Runs and errors", "Several processes, and what goes wrong.", ["errors", "execution", "_version"]),
]  # fmt: skip


def grouped() -> dict[str, list[str]]:
    """Public names by the title of their group."""
    owners = {owner: title for title, _, modules in GROUPS for owner in modules}
    found: dict[str, list[str]] = {title: [] for title, *_ in GROUPS}
    for module, names in vars(jaxeval)["_HOMES"].items():
        alike = [owner for owner in owners if f"{module}.".startswith(f"{owner}.") or module.startswith(f"{owner}_")]
        if not alike:
            raise ValueError(f"{names}: no group of the reference takes names of {module}; see GROUPS in {__file__}")
        found[owners[max(alike, key=len)]] += names
    return found


def slug(title: str) -> str:
    """The name of a group's page."""
    return "-".join("".join(c if c.isalnum() else " " for c in title.lower().replace("'", "")).split())


#: Public too, in the modules that have them: what a study of a method takes. The notebooks use them.
STUDIES = {
    "accuracy.calibration_planning": ["judge_pays", "labels_for_length", "minimum_calibration_size", "variance_ratio"],
    "accuracy.simulation": ["comparison_study", "coverage_study", "shift_study"],
    "accuracy.split_study": ["split_study"],
    "anchored.abstention": ["abstain"],
    "anchored.diagnostics": ["diagnose_anchors"],
    "anchored.direct_scoring": [
        "direct_score_agreement", "direct_score_statistics", "direct_win_probability", "dispersion",
    ],
    "anchored.judge_panel": ["judge_kappas", "reliability_factor"],
    "anchored.pooling": ["pooled_scores", "pooling_curve"],
    "anchored.prompt_subsampling": ["subsample_study"],
    "anchored.rating_systems": ["compare_rating_systems"],
    "anchored.scores": ["bootstrap_scores"],
    "anchored.screening": ["width_by_threshold"],
    "anchored.simulation": ["simulate_anchored_verdicts"],
    "evaluators.advice": ["evaluator_advice"],
    "evaluators.rank_correlation": ["delta_table"],
    "softelo.annotation_budget": ["budget_sweep"],
    "softelo.conformal_intervals": ["conformal_study", "leave_one_out_intervals", "width_decomposition"],
    "softelo.judge_agreement": ["agreement_by_score_gap", "reliability"],
    "softelo.judge_diagnostics": ["diagnose"],
    "softelo.residuals": ["residual_ramp"],
}  # fmt: skip

#: Where each public name is documented.
PLACES = {
    **{name: f"jaxeval.{module}.{name}" for module, names in STUDIES.items() for name in names},
    **{name: f"jaxeval.plots.{name}" for name in plots.__all__},
    **{name: f"jaxeval.{name}" for name in jaxeval.__all__},
}


def page(title: str, text: str, names: list[str]) -> str:
    """A group: a line for each name, then all of each."""
    names = sorted(names, key=lambda name: isinstance(_value(name), type))  # calls, then what they give
    return "\n".join([*_head(title, "=", text, names), *(line for name in names for line in (*_entry(name), ""))])


def _head(title: str, underline: str, text: str, names: list[str]) -> list[str]:
    lines = [title, underline * len(title), "", text, "", ".. autosummary::", "   :nosignatures:", ""]
    return [*lines, *(f"   ~{name}" if name.count(".") > 1 else f"   {name}" for name in names), ""]


def _value(name: str) -> Any:
    module, _, name = name.rpartition(".")
    return getattr(import_module(module), name)


def _entry(name: str) -> Iterator[str]:
    value = _value(name)
    if isinstance(value, type):
        yield from (f".. autoclass:: {name}", "   :members:", "   :show-inheritance:")
    elif callable(value):
        yield f".. autofunction:: {name}"
    else:
        yield f".. autodata:: {name}"


def write_pages(app: Sphinx) -> None:
    """All pages of the reference, and their index. A page that says the same is left, so that Sphinx reads it once."""
    groups = {title: (text, [f"jaxeval.{name}" for name in grouped()[title]]) for title, text, _ in GROUPS}
    groups["Figures"] = (
        "Figures of results, by matplotlib. Each takes a title and a caption.",
        [f"jaxeval.plots.{name}" for name in plots.__all__],
    )
    groups["Studies"] = (
        "How methods behave, on simulated data and on yours. The notebooks use them. Import them from their modules.",
        [f"jaxeval.{module}.{name}" for module, names in STUDIES.items() for name in names],
    )
    pages = {f"{slug(title)}.rst": page(title, text, names) for title, (text, names) in groups.items()}
    index = ["Python reference", "================", "", "Every public name, by what it is for.", ""]
    index += [".. toctree::", "   :hidden:", "", *(f"   {name.removesuffix('.rst')}" for name in pages), ""]
    for title, (text, names) in groups.items():
        index += _head(title, "-", text, names)
    pages["index.rst"] = "\n".join(index)
    FOLDER.mkdir(exist_ok=True)
    for name, text in pages.items():
        path = FOLDER / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
    for path in FOLDER.glob("*.rst"):
        if path.name not in pages:
            path.unlink()


def plain_bars(app: Sphinx, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """In docstrings bars are absolute values; in reStructuredText they are substitutions."""
    in_example = False
    for k, line in enumerate(lines):
        in_example = line.lstrip().startswith(">>>") or (in_example and bool(line.strip()))
        if not in_example:
            lines[k] = re.sub(r"(``.*?``)|\|", lambda found: found[1] or r"\|", line)


def resolved(app: Sphinx, env: Any, node: nodes.Element, content: nodes.Element) -> nodes.Element | None:
    """Names are documented where users find them; docstrings and annotations name them as their module knows them.

    What is not documented but exists (a helper, an argument, a file) is no link. What does not exist stays an error.
    """
    if node.get("refdomain") != "py":
        return None
    target = node["reftarget"]
    *owner, name = target.split(".")
    full = [PLACES[name]] if name in PLACES else [f"{PLACES[of]}.{name}" for of in owner[-1:] if of in PLACES]
    for place in full:
        found = env.get_domain("py").resolve_xref(env, node["refdoc"], app.builder, "obj", place, node, content)
        if found is not None:
            return found
    known = name in _written() or target.startswith("jax.") or (ROOT / target).exists()
    return content if known and node["reftype"] == "obj" else None


@cache
def _written() -> set[str]:
    """Every name that the package's code gives to something."""
    names = set()
    for path in (ROOT / "jaxeval").rglob("*.py"):
        names.add(path.stem)
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            match node:
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                    names.add(name)
                case ast.Name(id=name, ctx=ast.Store()):
                    names.add(name)
    return names


def setup(app: Sphinx) -> dict[str, Any]:
    """An extension of Sphinx."""
    app.connect("builder-inited", write_pages)
    app.connect("autodoc-process-docstring", plain_bars)
    app.connect("missing-reference", resolved)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
