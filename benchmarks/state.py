"""Write docs/state/: what public leaderboards carry, computed from their votes.

JAXEVAL_DATA=FOLDER python benchmarks/state.py [NAME...]    # all boards, five minutes on two cores, or those named

The folder holds the votes and scores; none of them is shipped. A page says which command gives each of its numbers.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

import jaxeval

HOME = Path(__file__).parents[1] / "docs" / "state"
DATA = Path(os.environ.get("JAXEVAL_DATA", "data"))
_FAR = 1.0  # Elo


class Board(NamedTuple):
    """A public board: its votes, and what is known of them."""

    name: str
    title: str
    file: str
    options: str  # of the command, that say how its file is read
    read: Callable[[Path], jaxeval.Battles]
    source: str
    missing: str  # what could not be checked


def votes(path: Path, **columns: str) -> jaxeval.Battles:
    """Votes without battles of a model against itself."""
    frame = pd.read_parquet(path)
    text = dict.fromkeys(("model_a", "model_b", columns.get("winner", "winner")), str)
    return jaxeval.Battles.from_pandas(frame[frame["model_a"] != frame["model_b"]].astype(text), **columns)


def matches(path: Path) -> jaxeval.Battles:
    """Football matches, the side with more goals winning."""
    return jaxeval.Battles.from_pandas(
        pd.read_parquet(path), model_a="home_team", model_b="away_team", scores=("home_score", "away_score"),
        keep=["neutral"], competitor="team",
    )  # fmt: skip


BOARDS = (
    Board(
        "arena140k", "LMArena, 140,000 votes", "arena140k_votes.parquet", "", lambda path: votes(path),
        "LMArena's arena-human-preference-140k, votes CC-BY-4.0, as kept in beniaminogreen/chatbot_arena (d787472)",
        "The votes have no time, no voter and no text here: drift, the weight of single voters and style are not "
        "looked at. LMArena's own board of these days is not compared.",
    ),
    Board(
        "arena27k", "Chatbot Arena 2023, 27,000 votes", "arena27k_human_3judges.parquet", "--winner human",
        lambda path: votes(path, winner="human"),
        "LMSYS' 33,000 conversations, votes CC-BY-4.0, as kept in Networks-Learning/prediction-powered-ranking "
        "(af64521)",
        "The votes have no time and no voter here. 6,000 of the 33,000 were left out by the source.",
    ),
    Board(
        "football", "National football teams 1872-2026 (a control)", "football_international_results.parquet", "",
        matches, "martj42/international_results (65d212a), CC0",
        "One strength for 150 years is a wrong model on purpose: teams change. The control is the home side's "
        "advantage, which everybody knows to be there.",
    ),
)  # fmt: skip


def facts(board: Board, battles: jaxeval.Battles) -> tuple[dict[str, str], list[str]]:
    """Numbers of a board, and the verdict of its audit."""
    table = jaxeval.leaderboard(battles, progress=False)
    ranked = table[table["rank"].notna()]
    width = (ranked["rank_worst"] - ranked["rank_best"] + 1).astype(int)
    names = table["model"].astype(str)
    found = {
        "the answer": table.attrs["answer"],
        "votes": f"{int(table['vote_count'].sum()) // 2:,}, of which ties: {battles.report.n_ties:,}",
        "rated, and with a rank": f"{len(names)}, {len(ranked)}",
        "whose rank the votes settle": f"{int((width == 1).sum())} of {len(ranked)}",
        "ranks left open, median": f"{width.median():g}",
        "tiers that the votes separate": f"{int(ranked['tier'].max())}",
    }
    published = DATA / "golden_arena_rank_bt.csv.gz"
    if board.name != "football" and published.exists():
        rows = pd.read_csv(published)
        own = rows[rows["dataset"].str.startswith(board.name) & ~rows["reweighted"].astype(bool)]
        if "label" in own:
            own = own[own["label"].isin(["winner", "human"])]
        both = table.set_index("model")["rating"].to_frame("own").join(own.set_index("model")["rating"]).dropna()
        off = both["own"] - both["rating"]
        found["arena-rank 0.1.1, at its default settings"] = _apart(off)
    if board.name == "football":
        fit = jaxeval.fit_bradley_terry(battles, features=[jaxeval.position_advantage("neutral")])
        row = fit.coefficients().iloc[0]
        unit = 400 / np.log(10)
        ends = (row["coefficient"] * unit, row["lower"] * unit, row["upper"] * unit)
        found["the home side's advantage"] = "{:.0f} Elo [{:.0f}, {:.0f}]".format(*ends)
    audited = jaxeval.audit(
        battles, parts=["board", "rank_evidence", "goodness_of_fit"], n_resamples=200, progress=False
    )
    return found, list(audited.verdict)


def _apart(off: pd.Series) -> str:
    """How far ratings are from published ones; one that is far off moves the mean, and so all others."""
    furthest = off.abs().idxmax()
    if abs(off[furthest]) < _FAR:
        return f"differs by at most {off.abs().max():.3f} Elo"
    rest = off.drop(furthest) - off.drop(furthest).mean()
    return (
        f"differs by at most {rest.abs().max():.3f} Elo, with equal means of all models but {furthest}, which has few "
        f"votes and differs by {abs(off[furthest]):.1f}"
    )


def page(board: Board, found: dict[str, str], verdict: list[str], made: str) -> str:
    """A page of one board."""
    call = " ".join(filter(None, ["jaxeval leaderboard", board.file, board.options]))
    audit = " ".join(filter(None, ["jaxeval audit", board.file, board.options]))
    extra = [f"{call} --position --neutral neutral"] if board.name == "football" else []
    rows = [f"| {name} | {value} |" for name, value in found.items()]
    return "\n".join([
        f"# {board.title}", "", f"Computed {made} with jaxeval {jaxeval.__version__} by `benchmarks/state.py`.",
        f"Source: {board.source}.", "", "| what | found |", "|---|---|", *rows, "", "```sh", call, *extra, "```", "",
        "## What the audit says", "", *(f"* {line}" for line in verdict), "", "```sh",
        f"{audit} --parts board,rank_evidence,goodness_of_fit --resamples 200", "```", "",
        "## What could not be checked", "", board.missing, "",
        "Back to the [state of the leaderboards](index.md).", "",
    ])  # fmt: skip


class Call(NamedTuple):
    """A command on a public file, and what of its answer a page shows."""

    title: str
    command: str
    table: str  # the table of its --out folder
    columns: dict[str, str]  # that are shown, by what they are called in the page
    rows: int = 10


class Scores(NamedTuple):
    """A public board of scores, and what is known of it."""

    name: str
    title: str
    source: str
    calls: tuple[Call, ...]
    published: Callable[[], list[str]]  # what was published, beside what the files give
    missing: str


AGREEMENT = {"evaluator": "evaluator", "measure": "measure", "value": "value", "lower": "from", "upper": "to",
             "n_models": "models"}  # fmt: skip
SCORE = {"rank": "rank", "rank_best": "best", "rank_worst": "worst", "model": "name", "score": "score",
         "lower": "from", "upper": "to", "tier": "tier"}  # fmt: skip
MEASURES = {"kendall_tau": "Kendall's tau-b", "spearman": "Spearman's rho"}
_OF_RANKS = (
    "Best and worst are the ranks that the items leave open to a model by itself, at 95 %. Models of one tier are not",
    "told apart from its first one, at 95 % for all pairs at once.", "",
)  # fmt: skip
_GOLD = 'alpacaeval_notebook_benchmarks.csv.gz --gold "Arena Elo [Feb 2, 2024]"'


def wildbench() -> list[str]:
    """WB-Score as published, and from the scores of items."""
    items = pd.read_parquet(DATA / "wildbench_item_scores.parquet")
    own = items[(items["judge"] == "gpt-4o-2024-05-13") & (items["version"] == "v2.0625")].groupby("model")["score"]
    stated = pd.read_csv(DATA / "wildbench_all_stat.csv.gz").set_index("model")["WB_score"]
    off = (20 * (own.mean() - 5) - stated).dropna().abs()
    judges = items[items["version"] == "v2.0522"].pivot_table(index="model", columns="judge", values="score").dropna()
    gap = judges["gpt-4-turbo-2024-04-09"] - judges["gpt-4o-2024-05-13"]
    order = judges.corr(method="kendall").iloc[0, 1]
    return [
        f"The published WB-Score is 20 (mean - 5). For {len(off)} models it can be computed anew: it differs by at "
        f"most {off.max():.1g}.",
        f"A score depends on the judge: gpt-4-turbo gives the same {len(gap)} models {gap.mean():.2f} points more than "
        f"gpt-4o on the scale of 1 to 10 (from {gap.min():.2f} to {gap.max():.2f}), and ranks them with tau "
        f"{order:.2f}.",
    ]


def rewardbench2_table() -> pd.DataFrame:
    """Whether a judge scores the right answer of four highest: with one run and with the mean of eight."""
    rows = pd.read_parquet(DATA / "rb2_judge_k8_runs.parquet")
    rows = rows[rows["collection"].isin(["base_both_k8", "base_nano_k8", "criteria_both_k8"])]
    runs, parts = [f"s{k}" for k in range(1, 9)], []
    for name, score in {"1 run": rows["s1"].astype(float), "8 runs": rows[runs].astype(float).mean(axis=1)}.items():
        board = rows["judge"].astype(str) + ", " + rows["prompt_variant"].astype(str) + ", " + name
        of_item = rows.assign(score=score, model=board).pivot_table(
            index=["model", "item"], columns="response_idx", values="score", dropna=False
        ).dropna()  # fmt: skip
        most = of_item.eq(of_item.max(axis=1), axis=0)
        right, level = most[0], most.sum(axis=1)
        columns = {"correct": (right & (level == 1)).astype(float), "shared": right / level}
        parts.append(pd.DataFrame(columns).reset_index())
    return pd.concat(parts, ignore_index=True)


def rewardbench2() -> list[str]:
    """Accuracies as published, and what they owe to ties."""
    means = rewardbench2_table().groupby("model")[["correct", "shared"]].mean().mul(100)
    stated = {"gpt-5.4, base, 1 run": 71.7, "gpt-5.4, base, 8 runs": 81.5, "gpt-5.4, criteria, 8 runs": 83.6,
              "gpt-5.4-mini, base, 8 runs": 79.2}  # fmt: skip
    off = max(abs(round(means.loc[name, "correct"], 1) - value) for name, value in stated.items())
    one, eight = means.loc["gpt-5.4, base, 1 run"], means.loc["gpt-5.4, base, 8 runs"]
    gains = eight - one
    return [
        f"The {len(stated)} accuracies in the source's README (71.7 %, 81.5 %, 83.6 %, 79.2 %) follow from the files; "
        f"they differ by at most {off:.1f} points.",
        f"They count a tie as wrong. Eight runs are {gains['correct']:.1f} points better than one for gpt-5.4. Where "
        f"the answers that share the highest score share the point, they are {gains['shared']:.1f} points better "
        f"({one['shared']:.1f} % and {eight['shared']:.1f} %): the rest of the gain is ties that the mean breaks.",
    ]


def apart(value: pd.Series, error: pd.Series) -> tuple[int, int]:
    """How many neighbours on a board differ by more than 1.96 standard errors, as if these were independent."""
    order = value.sort_values(ascending=False).index
    value, error = value[order].to_numpy(), error[order].to_numpy()
    sure = -np.diff(value) > 1.96 * np.hypot(error[1:], error[:-1])
    return int(sure.sum()), len(sure)


def alpacaeval() -> list[str]:
    """Standard errors as published, and correlations with the Arena."""
    boards = pd.read_parquet(DATA / "alpacaeval_leaderboards.parquet")
    two = boards[boards["board"] == "alpacaeval2"].dropna(subset=["win_rate", "standard_error"]).set_index("model")
    raw = apart(two["win_rate"], two["standard_error"])
    both = two.dropna(subset=["length_controlled_winrate", "lc_standard_error"])
    controlled = apart(both["length_controlled_winrate"], both["lc_standard_error"])
    wins = 100 * (two["n_wins"] + two["n_draws"] / 2) / two["n_total"]
    off = (wins - two["discrete_win_rate"]).abs()
    # Ranks of the NullModel, which answers every prompt with the same text.
    ranks = two["win_rate"].rank(ascending=False), both["length_controlled_winrate"].rank(ascending=False)
    null = next((name for name in two.index if "NullModel" in str(name)), None)
    rows = [
        "The source's README states a Spearman correlation with the Arena of 0.93 for win rates and 0.98 for length-"
        "controlled ones. The table above has both with their intervals.",
        "Pairs of neighbours on AlpacaEval 2's board that differ by more than 1.96 standard errors: "
        f"{raw[0]} of {raw[1]} by win rate, {controlled[0]} of {controlled[1]} by length-controlled win rate. This "
        "takes the published errors as independent. Models share 805 prompts, so paired differences would tell more.",
        f"Wins and draws give the published discrete win rate of {int((off < 0.01).sum())} of {int(off.notna().sum())} "
        f"models; the largest difference is {off.max():.2f} points.",
    ]
    if null is not None:
        rows.append(
            f"{null}, whose answer is the same text to every prompt, has rank {ranks[0][null]:.0f} by win rate and "
            f"{ranks[1][null]:.0f} by the length-controlled one: no interval of new prompts tells of a judge that is "
            "cheated."
        )
    return rows


def arena_hard() -> list[str]:
    """Intervals as published."""
    board = pd.read_csv(DATA / "arena_hard_leaderboard_20240731.csv.gz").set_index("model")
    error = (board["rating_q975"] - board["rating_q025"]) / (2 * 1.96)
    board, error = board[error > 0], error[error > 0]
    sure, n = apart(board["score"], error)
    return [
        f"Pairs of neighbours on the board that differ by more than 1.96 standard errors: {sure} of {n}. This takes "
        "the errors from the published 95 % intervals, and as independent. Models share 500 prompts, so paired "
        "differences would tell more.",
        f"The median interval is {(board['rating_q975'] - board['rating_q025']).median():.1f} points wide, and the "
        f"median gap between neighbours {board['score'].sort_values().diff().median():.2f}.",
    ]


def mtbench() -> list[str]:
    """How its scores lie."""
    rows = pd.read_csv(DATA / "arena_mtbench_mmlu_tables.csv.gz")
    last = rows[rows["date"] == rows["date"].max()].dropna(subset=["mt_bench"])
    values = last["mt_bench"].round(2)
    gaps = values.sort_values().diff().dropna()
    return [
        f"The table beside the Arena of {rows['date'].max()} has MT-bench scores of {len(last)} models, on "
        f"{values.nunique()} distinct values: {int((gaps == 0).sum())} of {len(gaps)} neighbours have the same score, "
        f"and the median gap is {gaps.median():.2f} of 10 points.",
        "No standard errors are published there, so the table itself cannot say which gaps are more than chance.",
    ]


SCORES = (
    Scores(
        "wildbench", "WildBench", "allenai/WildBench (d6b8dca), Apache-2.0",
        (
            Call(
                "What its scores by gpt-4o carry",
                "jaxeval scores wildbench_item_scores.parquet --where \"judge = 'gpt-4o-2024-05-13' and version = "
                "'v2.0625'\" --missing complete", "scores", SCORE,
            ),
            Call(
                "Does it rank as people do?",
                'jaxeval meta wildbench_all_stat.csv.gz --gold "Arena Elo (hard-en) - 2024-07-16" --evaluator WB_Elo '
                "--evaluator WB_score --evaluator Length", "agreement", AGREEMENT,
            ),
        ),
        wildbench, "The source keeps 29 of its 167 files of item scores: 8 of 61 models can be ranked by one judge. "
        "Reruns of a judge are not there.",
    ),
    Scores(
        "alpacaeval", "AlpacaEval", "tatsu-lab/alpaca_eval (cd543a1), Apache-2.0",
        (
            Call(
                "Does it rank as people do?", f'jaxeval meta {_GOLD} --evaluator "LC AlpacaEval 2.0" --evaluator '
                '"AlpacaEval 2.0" --evaluator "AlpacaEval 1.0" --evaluator "Output Length"', "agreement", AGREEMENT,
            ),
        ),
        alpacaeval, "Judgments of single prompts are not shown, as their licence does not allow it (CC-BY-NC): ranks "
        "by paired differences are missing.",
    ),
    Scores(
        "arena-hard", "Arena-Hard", "lm-sys/arena-hard-auto (efc012e), board of 2024-07-31, and allenai/WildBench "
        "(d6b8dca), both Apache-2.0",
        (
            Call(
                "Does it rank as people do?",
                'jaxeval meta wildbench_all_stat.csv.gz --gold "Arena Elo (hard-en) - 2024-07-16" --evaluator '
                '"Arena-Hard v0.1"', "agreement", AGREEMENT,
            ),
        ),
        arena_hard, "Its judgments are in no public copy that could be had here: neither a style control nor the "
        "errors of its judge could be looked at.",
    ),
    Scores(
        "rewardbench2", "RewardBench 2, judged by one family of models",
        "composo-ai/llm-judge-criteria-ensembling (e4049a5), MIT: three judges score the four answers of each of the "
        "items of RewardBench 2 eight times",
        (
            Call(
                "What the accuracies carry",
                "jaxeval scores rewardbench2.parquet --model model --item item --score correct --missing complete",
                "scores", SCORE,
            ),
            Call(
                "The same, where ties share the point",
                "jaxeval scores rewardbench2.parquet --model model --item item --score shared --missing complete",
                "scores", SCORE,
            ),
        ),
        rewardbench2, "These are judges of one maker, not the leaderboard of reward models, whose scores of items "
        "could not be had here. `rewardbench2.parquet` is the table that `rewardbench2_table` of "
        "`benchmarks/state.py` makes of the published file.",
    ),
    Scores(
        "mtbench", "MT-bench", "utterstep/chatbot-arena-leaderbord-vis (3e3c081) and tatsu-lab/alpaca_eval (cd543a1), "
        "both Apache-2.0",
        (
            Call(
                "Does it rank as people do?", f'jaxeval meta {_GOLD} --evaluator "MT-bench (multi-turn)" --evaluator '
                '"MMLU (5-shot)"', "agreement", AGREEMENT,
            ),
        ),
        mtbench, "Scores of its 80 questions are not there: neither ranks nor errors of single models could be "
        "computed.",
    ),
)  # fmt: skip


def answered(call: Call, folder: Path) -> tuple[list[str], list[str]]:
    """Run a command, and return its first sentences and the rows of a table in Markdown."""
    out = folder / "out"
    words = [*shlex.split(call.command)[1:], "--out", f"{out}/"]
    run = subprocess.run(
        [sys.executable, "-m", "jaxeval", *words], cwd=folder, check=True, stdout=subprocess.PIPE, text=True
    )
    sentences = run.stdout.split("\n\n")[0].splitlines()
    table = pd.read_csv(out / f"{call.table}.csv")
    if "measure" in table:
        table = table[table["measure"].isin(MEASURES)].replace({"measure": MEASURES})
    rows = table[list(call.columns)].rename(columns=call.columns).head(call.rows)
    cells = [[_cell(value) for value in row] for row in rows.itertuples(index=False)]
    for file in out.iterdir():
        file.unlink()
    lines = [list(rows), ["---"] * len(rows.columns), *cells]
    return sentences, [f"| {' | '.join(line)} |" for line in lines]


def _cell(value: object) -> str:
    if isinstance(value, float):
        return "" if np.isnan(value) else f"{value:.0f}" if value == round(value) and abs(value) > 1 else f"{value:.3f}"
    return str(value)


def page_of_scores(board: Scores, made: str) -> tuple[str, str]:
    """A page of one board of scores, and its first sentence."""
    text = [
        f"# {board.title}", "", f"Computed {made} with jaxeval {jaxeval.__version__} by `benchmarks/state.py`.",
        f"Source: {board.source}.", "",
    ]  # fmt: skip
    first = ""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path in DATA.iterdir():
            (folder / path.name).symlink_to(path.resolve())
        rewardbench2_table().to_parquet(folder / "rewardbench2.parquet")
        for call in board.calls:
            sentences, table = answered(call, folder)
            first = first or sentences[0]
            said = [f"* {sentence}" for sentence in sentences[:4]]
            text += [f"## {call.title}", "", *said, "", *table, "", *(_OF_RANKS if call.columns is SCORE else [])]
            text += ["```sh", call.command.replace(" --", " \\\n  --"), "```", ""]
    text += ["## What was published, and what the files give", "", *(f"* {line}" for line in board.published()), ""]
    text += ["```sh", f"python benchmarks/state.py {board.name}", "```", "", "## What could not be checked", ""]
    return "\n".join([*text, board.missing, "", "Back to the [state of the leaderboards](index.md).", ""]), first


def main() -> None:
    """The command."""
    made = datetime.now(UTC).date().isoformat()
    HOME.mkdir(exist_ok=True)
    wanted, said = set(sys.argv[1:]), {}
    for board in SCORES:
        if not wanted or board.name in wanted:
            text, said[board.name] = page_of_scores(board, made)
            print(board.name, said[board.name], sep="\n", flush=True)
            (HOME / f"{board.name}.md").write_text(text)
    if wanted:
        return
    rows = []
    for board in BOARDS:
        battles = board.read(DATA / board.file)
        found, verdict = facts(board, battles)
        print(board.name, found, verdict, sep="\n", flush=True)
        (HOME / f"{board.name}.md").write_text(page(board, found, verdict, made))
        settled, tiers = found["whose rank the votes settle"], found["tiers that the votes separate"]
        rows.append(f"| [{board.title}]({board.name}.md) | {found['the answer']} | {settled} | {tiers} |")
    text = [
        "# State of the leaderboards", "",
        "What public leaderboards carry, computed from their votes: who leads, how many ranks the votes settle, and",
        f"what an audit finds. All of it was computed on {made} by `benchmarks/state.py` with jaxeval",
        f"{jaxeval.__version__}; every page names the commands that give its numbers. The votes are not shipped: the",
        "sources have them.", "",
        "| board | what it says | ranks settled | tiers |", "|---|---|---|---|", *rows, "",
        "A rank is *settled* where the votes leave one rank open, at 95 % for each model by itself. Models of one",
        "*tier* are not told apart from its first one, at 95 % for all pairs at once.", "",
        "## Boards of scores", "",
        "These publish scores by a judge, or tables without votes. Each page says what its scores carry, whether it",
        "ranks models as people do, and what differs from what was published.", "",
        *(f"* [{board.title}]({board.name}.md): {said[board.name]}." for board in SCORES), "",
        "## Where to go next", "", "[Audit](../audit.md) a board of your own, or ask whether [your evaluator ranks",
        "like people](../tasks/does-my-evaluator-rank-like-people.md).", "",
        "```{toctree}", ":hidden:", *(board.name for board in (*BOARDS, *SCORES)), "```", "",
    ]  # fmt: skip
    (HOME / "index.md").write_text("\n".join(text))


if __name__ == "__main__":
    main()
