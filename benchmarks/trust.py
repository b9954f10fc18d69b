"""Writes docs/trust.md: what was simulated, compared and tried, from committed results.

    python benchmarks/trust.py              # the page, from benchmarks/results, papers.toml and the tests' names
    python benchmarks/trust.py --simulate   # first the coverage that is not there yet, and the peers that are installed

The page holds no number that is not in those files. Tests of hostile inputs are counted from the tests' source.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from trust_coverage import ERRORS, RESULTS, SECTIONS, WITHOUT_A_ROW, Row, on_purpose, rows, verdict

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "trust.md"
HOSTILE = RESULTS / "hostile.json"
PAPERS = Path(__file__).parent / "papers.toml"
#: Larger differences from a peer need a note.
NEAR = 0.001
#: Mean scores of so many units, or fewer, are counted where intervals are too short.
FEW_UNITS = 30
STATUSES = {
    "reproduced": "our number equals theirs, or the same experiment has the same result",
    "in part": "some of its numbers are reproduced; the others need data that are not public",
    "follows": "printed numbers follow from other printed numbers, by our functions or arithmetic, without data",
    "direction": "the finding is the same with other data or parameters, as theirs are not released",
    "differs": "our number differs, and the line says why",
    "not released": "needs data that are not public",
    "no result": "a drawing, a prompt, names, or a description of data",
}


def table(head: list[str], lines: list[list[str]], right: str = "") -> str:
    """A Markdown table; columns whose letter in ``right`` is r are flush right."""
    rule = ["---:" if side == "r" else "---" for side in right.ljust(len(head))]
    text = [[cell.replace("|", "\\|") for cell in line] for line in lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in [head, rule, *text])


def counted(n: int, noun: str, many: str | None = None) -> str:
    """A number and its noun; by default the plural has an s."""
    return f"{n:,} {noun if n == 1 else many or f'{noun}s'}"


def share(x: float, digits: int = 3) -> str:
    """A share to three decimals, without its zero."""
    return f"{x:.{digits}f}".removeprefix("0") if x < 1 else f"{x:.{digits}f}"


# --- coverage -------------------------------------------------------------------------------------


def apart(difference: float, unit: str) -> str:
    """A largest difference."""
    return f"{difference:.1e} {unit}".strip() if difference else "none"


def coverage_lines(own: list[Row]) -> list[list[str]]:
    """Rows of the table."""
    lines = []
    for each in own:
        said = verdict(each)
        none = f"no interval: {each['without_interval']:.1%}" if each["without_interval"] > 0.0005 else ""
        note = "; ".join(part for part in (each["note"], none) if part)
        lines.append(
            [each["method"], each["case"], share(each["nominal"]), share(each["observed"]),
             share(each["standard_error"], 4) if each["data_sets"] else "exact",
             f"{each['data_sets']:,}" if each["data_sets"] else "all",
             f"**{said}**" if said == "too short" else said,
             note]
        )  # fmt: skip
    return lines


def few_units(own: Row) -> bool:
    """Whether the scores of a case are of few items, clusters or benchmarks."""
    return int(re.findall(r"(\d+) (?:items|clusters|benchmarks)$", own["case"])[0]) <= FEW_UNITS


def coverage() -> str:
    """The section on intervals."""
    every = rows()
    found = [each for each in every if not on_purpose(each)]
    purpose = [each for each in every if on_purpose(each)]
    said, also = (Counter(verdict(each) for each in own) for own in (found, purpose))
    short = [each for each in found if verdict(each) == "too short"]
    short.sort(key=lambda each: each["observed"] - each["nominal"])
    bare = [each for each in short if not each["note"]]
    means = [each for each in short if each["method"].startswith("mean score") and few_units(each)]
    head = ["method", "case", "nominal", "observed", "error", "data sets", "verdict", "note"]
    names = {name for each in every for name in each["functions"]}
    text = [
        "## Intervals",
        f"{len(every)} cases have been simulated, for {counted(len(names), 'public name')}. *Observed* is the share of "
        "intervals that hold the truth, and *error* its standard error over simulated data sets; *exact* shares are "
        "sums over all possible counts. The verdict goes by the value: where .95 is nominal, an interval that holds "
        "less than .940 is too short, and one that holds more than .975 is longer than needed (other nominal shares "
        "in proportion to their standard deviation). A share that is so far off, but within two errors of the nominal "
        "one (three in a cell chosen as the worst), is not settled: it needs more data sets. Two errors are exceeded "
        "on one side by chance in about one case of forty. Clusters of votes have limits of their own: .935 and "
        ".970, as errors over few or unequal clusters are themselves estimates from few numbers.",
        "What is wrong by its name, and what is shown on purpose beside the default, is counted by itself.",
        table(
            ["verdict", "by default", "wrong by name, or asked for"],
            [[name, str(said[name]), str(also[name])] for name in sorted(said | also)],
            " rr",
        ),
        "### What misses",
        f"{counted(len(short), 'case is', 'cases are')} too short, the worst first. A note says what the library "
        "reports in this case, or why the interval is too short. "
        f"{counted(len(bare), 'case has', 'cases have')} no note: there the library has no correction.",
        table([*head[:5], "note"], [[*line[:5], line[-1]] for line in coverage_lines(short)], "  rrr"),
        f"{counted(len(means), 'of them is of mean scores', 'of them are of mean scores')} of {FEW_UNITS} or fewer "
        "items, clusters or benchmarks.",
        no_leader(),
        "### Wrong by name, or asked for",
        "None of these is what the library gives by default. Models with few votes have by [default](few-battles.md) "
        "the interval of a penalised fit.",
        table(head, coverage_lines(purpose), "  rrrr"),
    ]  # fmt: skip
    for section in SECTIONS:
        whole = [each for each in every if each["section"] == section]
        own = [each for each in whole if not on_purpose(each)]
        dates = sorted({each["date"] for each in whole})
        named = ", ".join(f"`{name}`" for name in sorted({name for each in whole for name in each["functions"]}))
        text += [
            f"### {section}",
            f"Intervals of {named}, simulated on {' and '.join(dates)}.",
            table(head, coverage_lines(own), "  rrrr"),
        ]
    text += [
        "### Names without a row",
        table(["name", "why"], [[f"`{name}`", why] for name, why in WITHOUT_A_ROW.items()]),
    ]
    return "\n\n".join(text)


def no_leader() -> str:
    """Claims of a leader among equal models."""
    found = results("equal_models")
    cells = found["cells"]
    boards, claims = (sum(cell[name] for cell in cells) for name in ("boards", "claims"))
    worst = max(cells, key=lambda cell: cell["claims"] / cell["boards"])
    sizes = sorted({cell["boards"] for cell in cells})
    games = sorted({cell["games"] for cell in cells})
    ties = sorted({cell["ties"] for cell in cells})
    lines = []
    for n, pairs in dict.fromkeys((cell["models"], cell["pairs"]) for cell in cells):
        own = {(cell["games"], cell["ties"]): cell["claims"] / cell["boards"]
               for cell in cells if (cell["models"], cell["pairs"]) == (n, pairs)}  # fmt: skip
        lines += [[str(n), pairs, share(tie, 1) if tie else "0", *(share(own[g, tie]) for g in games)] for tie in ties]
    text = [
        "### Where there is no leader",
        f"Boards of equal models, {' or '.join(map(str, sizes))} a cell, simulated on {found['environment']['date']} "
        f"(`benchmarks/equal_models.py`): {claims} of {boards:,} answers of `Bootstrap` name a model that is ahead of "
        f"all others, and in the worst cell {worst['claims']} of {worst['boards']}; the level allows one of twenty. "
        "Pairs are equally likely, or lopsided: the first model is met eight times as often as the last. By models, "
        "pairs, share of ties and games:",
        table(["models", "pairs", "ties", *(f"{g} games" for g in games)], lines, "rl" + "r" * (1 + len(games))),
    ]
    others = found.get("estimators", [])  # of an older run: none
    text += others and [
        "Six equal models, of which the first has eight times as many votes or rankings as the last (panels and "
        "prediction-powered boards: as many; scores: twice as many items; merged boards: 20 models, two of them rated "
        "by the judge alone), by estimator: boards with a leader, boards of several tiers, and the share of sets of "
        "ranks that leave out a rank. The level allows one of twenty of each, and one of ten at .9; shares in bold are "
        "more, by two of their errors.",
        table(
            ["estimator", "boards", "a leader", "several tiers", "sets of ranks", "simulated on"],
            [[own["estimator"], str(own["boards"]), *(_beside_level(own, own[name] / own["boards"])
              for name in ("leaders", "tiers")), share(own["rank_sets_missed"]), own["date"]] for own in others],
            "lrrrrl",
        ),
    ]  # fmt: skip
    audited, claims = found.get("audits", []), ("told_apart", "only_one", "misfit", "pairs", "triads", "circles")
    text += audited and [
        "Audits of boards of equal models: the share that says that some neighbours are told apart, that only one "
        "model may be first, that one number per model does not fit, that some pair sticks out, that some triad does "
        "not add up, and that log-odds go in circles beyond chance. The level allows one of twenty of each.",
        table(
            ["models", "games", "pairs", "boards", "told apart", "one first", "misfit", "a pair", "a triad", "circles"],
            [[str(own["models"]), str(own["games"]), own["drawn"], str(own["boards"]),
              *(share(own[name] / own["boards"]) if name in own else "" for name in claims)] for own in audited],
            "rrlrrrrrrr",
        ),
    ]  # fmt: skip
    return "\n\n".join(text)


def _beside_level(own: dict[str, Any], claimed: float) -> str:
    """A share of boards with a claim, in bold where it is above the level by more than two errors."""
    allowed = 0.1 if "at .9" in own["estimator"] else 0.05
    more = claimed > allowed + ERRORS * (allowed * (1 - allowed) / own["boards"]) ** 0.5
    return f"**{share(claimed)}**" if more else share(claimed)


# --- peers ----------------------------------------------------------------------------------------


def results(name: str) -> Any:
    """A file of results."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def differences() -> list[list[str]]:
    """Largest differences from peers: those of agreement.py, then those that other benchmarks check."""
    lines = [
        [own["peer"], own["version"], own["what"], apart(own["largest_difference"], own["unit"]),
         own["note"], own["date"]]
        for own in results("agreement")
    ]  # fmt: skip

    def add(file: str, peer: str, what: str, difference: float, unit: str, note: str = "") -> None:
        found = results(file)["environment"]
        lines.append(
            [peer, found["versions"].get(peer, ""), what, f"{difference:.1e} {unit}".strip(), note, found["date"]]
        )

    for name, own in results("bootstrap")["boards"]["S"]["peers"].items():
        peer = name.split(" ")[0]
        note = own["note"].split(".")[0] if own["max_difference_elo"] > NEAR else ""
        add("bootstrap", peer, f"resampled ratings, board S ({name})", own["max_difference_elo"], "Elo", note)
    judge, anchored, style = results("judge")["study"], results("anchored"), results("style_control")
    add("judge", "ppi-python", "PPI++ intervals of 12 models and 3 judges",
        judge["max_difference_from_ppi_python"]["interval"], "")  # fmt: skip
    add("anchored", "scipy", "100,000 Beta intervals", anchored["max_difference_of_beta_ends"], "")
    add("anchored", "pingouin", "ICC of 20 judges", anchored["max_difference_of_icc"], "")
    add("style_control", "scikit-learn", "refits with 4 covariates", style["scikit_learn_max_difference_elo"], "Elo",
        "at the peer's tolerance")  # fmt: skip
    add("style_control", "arena-rank", "refits with 4 covariates", style["arena_rank_max_difference_elo"], "Elo",
        "at the peer's tolerance")  # fmt: skip
    add("meta_evaluation", "scipy", "taus under 10 gaps, 20 evaluators",
        results("meta_evaluation")["max_difference"]["loop"], "")  # fmt: skip
    add(
        "reference_study", "scipy", "taus of single references", results("reference_study")["max_difference_of_tau"], ""
    )
    add("soft_elo", "scipy", "Soft-Elo in NumPy and SciPy", results("soft_elo")["board"]["max_difference_elo"], "Elo")
    return lines


def peers() -> str:
    """The section on peers."""
    text = [
        "## Peers",
        f"Other libraries, and files of known answers (golden), give the same numbers to within {share(NEAR)} of the "
        "unit, except where a note says why. The table has the largest difference of all numbers compared, and the "
        "date of the last run in which the peer was installed.",
        table(["peer", "version", "what", "largest difference", "note", "date"], differences(), "   r"),
    ]
    return "\n\n".join(text)


# --- hostile inputs -------------------------------------------------------------------------------


def parametrized(function: ast.FunctionDef) -> int:
    """Cases of a test, as far as its lists stand in its source."""
    cases = 1
    for decorator in function.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func).endswith("parametrize"):
            values = decorator.args[1] if len(decorator.args) > 1 else None
            cases *= len(values.elts) if isinstance(values, ast.List | ast.Tuple) else 1
    return cases


def count_hostile() -> dict[str, Any]:
    """What tests try: names by kind, and tests that expect an error, by folder."""
    lists = {}
    for node in ast.parse((ROOT / "tests" / "hostile.py").read_text()).body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.List):
            own = [each for each in node.value.elts if not isinstance(each, ast.Starred)]
            lists[node.targets[0].id.lower()] = len(own)
    users, folders = [], {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        text = path.read_text()
        if "pytest.raises" not in text and "hostile" not in text:
            continue
        nodes = list(ast.walk(ast.parse(text)))
        imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        if any("hostile" in ast.unparse(node) for node in imports):
            users.append(path.relative_to(ROOT).as_posix())
        calls = [node for node in nodes if isinstance(node, ast.Call)]
        raises = [call for call in calls if getattr(call.func, "attr", "") == "raises"]
        raises = [call for call in raises if ast.unparse(call.func) == "pytest.raises"]
        tests = [node for node in nodes if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
        expecting = [node for node in tests if any(node.lineno <= x.lineno <= node.end_lineno for x in raises)]
        folder = path.parent.relative_to(ROOT / "tests").as_posix()
        one = folders.setdefault(
            folder if folder != "." else "whole package", {"tests": 0, "cases": 0, "errors": Counter()}
        )
        one["tests"] += len(expecting)
        one["cases"] += sum(map(parametrized, expecting))
        for call in raises:
            if call.args:
                one["errors"][ast.unparse(call.args[0]).split(".")[-1]] += 1
    kept = {
        name: {**one, "errors": dict(one["errors"].most_common(3))} for name, one in folders.items() if one["tests"]
    }
    return {"names": lists, "used_by": users, "refusals": kept}


KINDS = {
    "formulas": "what a spreadsheet would run",
    "markup": "HTML, Markdown, LaTeX, Jinja, YAML and rich's tags",
    "controls": "escape sequences, bidirectional overrides, line breaks, spaces without width",
    "scripts": "other writing systems and emoji",
    "long": "hundreds of letters",
    "names": "commas, quotes, empty names, spaces around names",
}


def hostile() -> str:
    """The section on hostile inputs."""
    found = json.loads(HOSTILE.read_text())
    lines = [[f"`{name.upper()}`", KINDS.get(name, ""), str(n)] for name, n in found["names"].items()]
    total = sum(found["names"].values())
    refusals = found["refusals"]
    each = [
        [folder, str(own["tests"]), str(own["cases"]), ", ".join(f"{name} {n}" for name, n in own["errors"].items())]
        for folder, own in sorted(refusals.items(), key=lambda item: -item[1]["cases"])
    ]
    text = [
        "## Hostile inputs",
        f"The name of a model may hold text that would harm the reader of a table. {total} such names, in "
        "`tests/hostile.py`, go through readers, tables, files, pages and screens in "
        f"{counted(len(found['used_by']), 'test module')}:",
        table(["list", "what", "names"], lines, "  r"),
        "Input without a meaning is refused, with a message that says what was found and what to do. These tests "
        "expect a refusal, in as many cases:",
        table(["tests of", "tests", "cases", "errors expected most"], each, " rr"),
        f"In all {sum(own['tests'] for own in refusals.values()):,} tests with "
        f"{sum(own['cases'] for own in refusals.values()):,} cases.",
    ]
    return "\n\n".join(text)


# --- papers ---------------------------------------------------------------------------------------


def published() -> list[dict[str, Any]]:
    """Tables and figures of the papers."""
    return tomllib.loads(PAPERS.read_text())["papers"]


def test_exists(name: str) -> bool:
    """Whether a file of tests or a notebook is there, and in it the class and the test that are named."""
    path, *inside = name.split("::")
    if not (ROOT / path).exists():
        return False
    level: list[ast.stmt] = ast.parse((ROOT / path).read_text()).body if inside else []
    for own in inside:
        found = [node for node in level if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == own]
        if not found:
            return False
        level = found[0].body
    return True


def simulated_coverage() -> str:
    """What the simulations of arXiv:2511.21140 hold, in full."""
    own = [each for each in rows() if each["source"] == "coverage" and "168 settings" in each["case"]]
    equal = [each["observed"] for each in own if "equal" in each["method"]]
    return f"coverage {share(min(equal))} to {share(max(equal))} over all settings, 10,000 replications each"


def papers() -> str:
    """The section on papers."""
    found = published()
    count = Counter(item["status"] for paper in found for item in paper["items"].values())
    text = [
        "## Papers",
        f"Every numbered table and figure of the five papers whose methods jaxeval has, {sum(count.values())} in all:",
        table(["", "how many", "meaning"], [[name, str(count[name]), STATUSES[name]] for name in STATUSES], " r"),
    ]
    for paper in found:
        lines = []
        for name, item in paper["items"].items():
            ours = item.get("ours", "").replace("COVERAGE", simulated_coverage())
            tests = ", ".join(f"`{own.split('/')[-1]}`" for own in item.get("tests", ()))
            status = f"**{item['status']}**" if item["status"] == "differs" else item["status"]
            lines.append([name, item["what"], status, item.get("theirs", ""), ours, tests])
        text += [
            f"### {paper['title']}",
            f"({paper['source']})",
            table(["", "what", "status", "theirs", "ours", "where"], lines),
        ]
    return "\n\n".join(text)


# --- the page -------------------------------------------------------------------------------------


def date() -> str:
    """The latest date of any result on the page."""
    return max([each["date"] for each in rows()] + [own["date"] for own in results("agreement")])


def page() -> str:
    """The page, from committed files alone."""
    head = [
        "# Why trust it",
        f"As of {date()}. `python benchmarks/trust.py` writes this page from the results in `benchmarks/results`, the "
        "list of papers in `benchmarks/papers.toml`, and the tests. It is not edited otherwise, and shows every miss.",
    ]
    return "\n\n".join([*head, coverage(), peers(), hostile(), papers()]) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--simulate", action="store_true", help="run what is not there yet, and the peers, first")
    if parser.parse_args().simulate:
        for script in ("interval_coverage.py", "agreement.py"):
            subprocess.run([sys.executable, str(Path(__file__).with_name(script))], check=True)
    HOSTILE.write_text(json.dumps(count_hostile(), indent=1) + "\n")
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
