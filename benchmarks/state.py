"""Write docs/state/: what public leaderboards carry, computed from their votes.

JAXEVAL_DATA=FOLDER python benchmarks/state.py        # all boards, two minutes on two cores

The folder holds the votes; none of them is shipped. A page says which command gives each of its numbers.
"""

import os
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


def main() -> None:
    """The command."""
    made = datetime.now(UTC).date().isoformat()
    HOME.mkdir(exist_ok=True)
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
        "Not here: AlpacaEval, Arena-Hard, WildBench, RewardBench 2 and MT-bench. Their published files have scores",
        "by a judge or tables without votes, and need other methods. Next: [audit](../audit.md) a board of yours.", "",
        "```{toctree}", ":hidden:", *(board.name for board in BOARDS), "```", "",
    ]  # fmt: skip
    (HOME / "index.md").write_text("\n".join(text))


if __name__ == "__main__":
    main()
