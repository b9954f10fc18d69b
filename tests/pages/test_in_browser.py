"""What a reader does with a page, in a real browser: every test ends with a console free of errors and no request."""

import csv
import io
import os
import re

import numpy as np
import pandas as pd
import pytest
from hostile import NAMES

import jaxeval
from jaxeval.pages.boards import shown_name
from jaxeval.show.documents import latex_text, markdown_text

pytestmark = pytest.mark.usefixtures("all_on_the_host")


def simulated():
    votes = jaxeval.simulate_votes(3_000, 6, seed=0, details=True)
    votes["longer"] = (votes["length_a"] - votes["length_b"]) / 100
    return jaxeval.Battles.from_pandas(votes, keep=["language", "longer"])


@pytest.fixture(scope="module")
def battles():
    return simulated()


@pytest.fixture(scope="module")
def file(tmp_path_factory, battles):
    """Two boards by language, and what is known of models."""
    path = tmp_path_factory.mktemp("pages") / "page.html"
    few = battles.filter(lambda votes: votes["language"].isin(["English", "Chinese"]))
    board = jaxeval.leaderboard(few, by="language", n_resamples=60, progress=False)
    known = pd.DataFrame({
        "model": [f"model-{k}" for k in range(1, 7)], "organisation": ["Ada", "Bo"] * 3, "price": range(6),
        "link": [f"https://example.org/{k}" for k in range(6)],
    })  # fmt: skip
    jaxeval.page(board, path, battles=few, metadata=known, title="Two languages")
    return path


@pytest.fixture(scope="module")
def plain(tmp_path_factory, battles):
    path = tmp_path_factory.mktemp("pages") / "plain.html"
    jaxeval.page(jaxeval.leaderboard(battles, n_resamples=60, progress=False), path, battles=battles)
    return path


@pytest.fixture(scope="module")
def all_votes(tmp_path_factory, battles):
    path = tmp_path_factory.mktemp("pages") / "all.html"
    boards = [
        jaxeval.leaderboard(battles, n_resamples=60, progress=False, **options)
        for options in ({}, {"features": ["longer"]})
    ]
    jaxeval.page(boards, path, battles=battles)
    return path


def names(page, panel="board"):
    return page.locator(f".panel.{panel} table tbody th .name").all_inner_texts()


def open_view(page, name):
    page.get_by_role("tablist", name="Views").get_by_role("tab", name=name, exact=True).click()


def copied(page):
    """What the page wrote to the clipboard, which it says."""
    page.get_by_text("Copied:").wait_for()
    return page.evaluate("navigator.clipboard.readText()")


def again(visit, file, page):
    """The same address in another window."""
    return visit(file, "#" + page.url.partition("#")[2])


def test_sort_search_and_filter_and_their_link(visit, file):
    page = visit(file)
    assert names(page) == sorted(names(page), key=names(page).index)
    assert len(names(page)) == 6
    page.get_by_role("button", name="Votes", exact=True).click()
    votes = [
        int(text.replace(",", ""))
        for text in page.locator(".board tbody td.number").all_inner_texts()
        if re.fullmatch(r"[\d,]{3,}", text)
    ]
    assert votes == sorted(votes, reverse=True)
    page.get_by_role("combobox", name="Organisation").select_option("Ada")
    assert set(names(page)) == {"model-1", "model-3", "model-5"}
    page.get_by_label("Search").fill("5")
    assert names(page) == ["model-5"]
    assert names(again(visit, file, page)) == ["model-5"]
    page.get_by_label("Search").fill("")
    page.get_by_label("Votes, at least").fill("100000")
    assert names(page) == []
    page.get_by_label("Votes, at least").fill("")
    page.get_by_label("Price, at most").fill("2")
    assert set(names(page)) == {"model-1", "model-3"}
    assert set(names(again(visit, file, page))) == {"model-1", "model-3"}


def test_links_of_metadata_lead_out_only_when_followed(visit, file):
    link = visit(file).get_by_role("link", name="model-3")
    assert link.get_attribute("href") == "https://example.org/2"
    assert link.get_attribute("rel") == "noopener noreferrer"


def test_the_answer_of_the_chosen_board_stands_on_top(visit, file):
    page = visit(file)
    answer = page.locator("h1 + p")
    page.get_by_role("tablist", name="Boards").get_by_role("tab", name="English").click()
    assert answer.inner_text().startswith("English: model-")
    page.get_by_text("Columns", exact=True).click()
    page.get_by_label("Show Price").uncheck()
    assert "Price" not in page.locator(".panel.board thead").inner_text()
    other = again(visit, file, page)
    other.get_by_role("button", name="More about model-1").click()
    assert "Price\n0" in other.locator("tr.more-of").inner_text()


@pytest.mark.slow
def test_the_front_of_prices(visit, file):
    """Of six models at 0 to 5 dollars: those that no cheaper one beats, and chances that say how sure that is."""
    page = visit(file, "#view=prices")
    rows = page.locator(".panel.prices tbody tr")
    rows.first.wait_for()
    found = [
        [cell.strip() for cell in row.all_inner_texts()] for row in (r.locator("th .name, td") for r in rows.all())
    ]
    best, front = -np.inf, []
    for name, rating, *_ in sorted(found, key=lambda row: float(row[2])):
        if float(rating) > best:
            front.append(name)
            best = float(rating)
    assert [name for name, _, _, is_on, *_ in found if is_on == "yes"] == [n for n, *_ in found if n in front]
    cheapest = min(found, key=lambda row: float(row[2]))
    assert cheapest[4] == "100%"  # whatever its rating is
    slider, told = page.get_by_label("Value of a point"), page.locator(".panel.prices [role=status]")
    for place, one in ((0, cheapest), (100, max(found, key=lambda row: float(row[1])))):
        slider.fill(str(place))
        assert f"{one[0]} is worth most (chance " in told.inner_text()
    assert f", {one[0]} is worth most" in again(visit, file, page).locator(".panel.prices [role=status]").inner_text()


@pytest.mark.slow
def test_tabs_by_mouse_and_keyboard(visit, file):
    page = visit(file)
    boards = page.get_by_role("tablist", name="Boards")
    first = boards.get_by_role("tab", selected=True).inner_text()
    boards.get_by_role("tab", selected=True).focus()
    page.keyboard.press("ArrowRight")
    second = boards.get_by_role("tab", selected=True).inner_text()
    assert {first, second} == {"English", "Chinese"}
    page.keyboard.press("ArrowRight")
    assert boards.get_by_role("tab", selected=True).inner_text() == first
    other = again(visit, file, page)
    assert other.get_by_role("tablist", name="Boards").get_by_role("tab", selected=True).inner_text() == first


@pytest.mark.slow
def test_the_matrix_of_categories(visit, file):
    page = visit(file)
    open_view(page, "Categories")
    heads = page.locator(".panel.categories thead th").all_inner_texts()
    assert {"English", "Chinese"} <= set(heads)
    assert len(names(page, "categories")) == 6


@pytest.mark.slow
def test_style_control_and_how_far_it_moves(visit, all_votes, battles):
    page = visit(all_votes)
    page.get_by_label("Style control").check()
    assert "Style moves it" in page.locator(".panel.board thead").inner_text()
    rating = jaxeval.fit_bradley_terry(battles, features=["longer"]).ratings.max()
    assert page.locator(".panel.board td.rating").first.inner_text() == f"{rating:.1f}"
    assert "style=1" in page.url
    open_view(page, "What if")
    panel = page.locator(".panel.what-if")
    panel.get_by_text("Control is fixed at its estimate").wait_for()
    assert panel.locator("td.rating").first.inner_text() == f"{rating:.1f}"
    panel.get_by_role("tab", name="Without ties").click()
    panel.get_by_text("changed places").wait_for()
    other = again(visit, all_votes, page)  # the link holds it
    other.locator(".panel.what-if tbody tr").first.wait_for()
    assert refitted(other) == refitted(page)
    assert other.get_by_role("tab", name="Without ties").get_attribute("aria-selected") == "true"


@pytest.mark.slow
def test_a_controlled_board_that_comes_first_is_shown_first(visit, tmp_path, battles):
    controlled, plain = (
        jaxeval.leaderboard(battles, n_resamples=60, progress=False, **own) for own in ({"features": ["longer"]}, {})
    )
    jaxeval.page([controlled, plain], tmp_path / "page.html", battles=battles)
    page = visit(tmp_path / "page.html")
    best = page.locator(".panel.board td.rating").first
    assert page.get_by_label("Style control").is_checked()
    assert best.inner_text() == f"{controlled['rating'].max():.1f}"
    page.get_by_label("Style control").uncheck()
    assert best.inner_text() == f"{plain['rating'].max():.1f}"
    other = again(visit, tmp_path / "page.html", page)
    assert other.locator(".panel.board td.rating").first.inner_text() == best.inner_text()
    open_view(page, "What if")
    page.get_by_text(f"Fitted {battles.n_battles:,} votes").wait_for()


@pytest.mark.parametrize(
    "form", ["CSV", pytest.param("Markdown", marks=pytest.mark.slow), pytest.param("LaTeX", marks=pytest.mark.slow)]
)
def test_copies_hold_what_is_shown(visit, file, form):
    page = visit(file, "#q=model-1")
    press = page.get_by_role("group", name="Copy the table").get_by_role("button", name=form)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    press.click()
    text = copied(page)
    assert "model-1" in text
    assert "model-2" not in text
    assert {"CSV": "Rank,", "Markdown": "| Rank |", "LaTeX": "\\begin{tabular}"}[form] in text
    page.evaluate("() => { navigator.clipboard.writeText = () => Promise.reject(new Error('not allowed')); }")
    press.click()  # readers copy it by hand
    assert page.get_by_role("dialog").locator("textarea").input_value().split() == text.split()
    page.keyboard.press("Escape")
    assert page.get_by_role("dialog").count() == 0


def refitted(page):
    rows = page.locator(".panel.what-if tbody tr").all()
    return {
        row.locator("th").inner_text(): float(row.locator("td.rating").inner_text().replace("\u2212", "-"))
        for row in rows
        if "unrated" not in row.inner_text()
    }


def assert_as_python(page, battles, **options):
    expected = jaxeval.fit_bradley_terry(battles, **options).ratings
    page.wait_for_function("!document.querySelector('.panel.what-if .told').textContent.includes('undefined')")
    found = refitted(page)
    assert found == pytest.approx({name: round(x, 1) for name, x in expected.items() if np.isfinite(x)}, abs=0.0501)


def test_what_if_refits_as_python_does(visit, plain, battles):
    page = visit(plain)
    open_view(page, "What if")
    panel = page.locator(".panel.what-if")
    panel.locator("tbody tr").first.wait_for()
    assert_as_python(page, battles)
    assert "intervals are of another kind" in panel.inner_text()

    panel.get_by_role("tab", name="Without ties").click()
    decided = battles.filter(lambda votes: votes["target"] != 0.5)
    panel.get_by_text(f"Fitted {decided.n_battles:,} votes").wait_for()
    assert_as_python(page, decided)

    panel.get_by_text("Change more votes").click()
    models = panel.get_by_role("group", name="Models", exact=True)
    models.locator("select").select_option("model-2")
    models.get_by_role("button", name="Leave out").click()
    rest = decided.filter(models=[name for name in decided.models if name != "model-2"])
    panel.get_by_text(f"Fitted {rest.n_battles:,} votes").wait_for()
    assert_as_python(page, rest)

    pair = panel.get_by_role("group", name="Votes of a pair")
    pair.locator("select").nth(0).select_option("model-1")
    pair.locator("select").nth(1).select_option("model-3")
    pair.get_by_role("button", name="Drop").click()
    rest = rest.filter(lambda votes: ~votes[["model_a", "model_b"]].isin(["model-1", "model-3"]).all(axis=1))
    panel.get_by_text(f"Fitted {rest.n_battles:,} votes").wait_for()
    assert_as_python(page, rest)

    scale = panel.get_by_role("group", name="Scale")
    scale.locator("select").nth(0).select_option("model")
    scale.locator("select").nth(1).select_option("model-4")
    scale.get_by_role("spinbutton").fill("1200")
    scale.get_by_role("spinbutton").press("Enter")
    page.wait_for_url("**at=1200**")
    assert_as_python(page, rest, gauge=("model-4", 1200.0))

    other = again(visit, plain, page)  # the link holds all of it
    other.locator(".panel.what-if tbody tr").first.wait_for()
    assert refitted(other) == refitted(page)
    panel.get_by_role("button", name="Start again").click()
    panel.get_by_text(f"Fitted {battles.n_battles:,} votes").wait_for()
    assert_as_python(page, battles)


@pytest.mark.slow
def test_categories_are_put_together(visit, file, battles):
    page = visit(file)
    open_view(page, "What if")
    page.get_by_role("tab", name="Only votes of").first.click()
    page.get_by_text(re.compile("models? moved by more than chance")).wait_for()
    page.get_by_text("Change more votes").click()
    page.locator(".panel.what-if").get_by_role("button", name="All", exact=True).click()
    few = battles.filter(lambda votes: votes["language"].isin(["English", "Chinese"]))
    page.get_by_text(f"Fitted {few.n_battles:,} votes").wait_for()
    assert_as_python(page, few)


@pytest.mark.slow
def test_heat_maps_by_keyboard(visit, all_votes, battles):
    page = visit(all_votes, "#view=pairs")
    canvas = page.locator("canvas.heat")
    canvas.focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    told = page.locator("#pair-told").inner_text()
    best, second = jaxeval.fit_bradley_terry(battles).ratings.sort_values(ascending=False).index[:2]
    votes = battles.to_pandas()
    n = votes[["model_a", "model_b"]].isin([best, second]).all(axis=1).sum()
    assert told.startswith(f"{best} against {second}: expected points ")
    assert f"{n:,} battles: " in told
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + 190 + 1.5 * 38, box["y"] + 22 + 2.5 * 38)  # row 3, column 2
    third = jaxeval.fit_bradley_terry(battles).ratings.sort_values(ascending=False).index[2]
    assert page.locator("#pair-told").inner_text().startswith(f"{third} against {second}: ")
    for kind in ("battles", "misfit"):
        page.get_by_label("Show").select_option(kind)
        assert "against" in page.locator("#pair-told").inner_text()


@pytest.mark.slow
def test_interval_plot_and_how_it_was_made(visit, file):
    page = visit(file, "#view=intervals")
    assert page.locator(".panel.intervals svg").count() >= 1
    open_view(page, "How it was made")
    text = page.locator(".panel.about").inner_text()
    assert re.search(r"SHA-256 of the data of this page: [0-9a-f]{64}", text)
    assert "seed" in text


@pytest.mark.slow
def test_history_and_moves(visit, tmp_path):
    votes = jaxeval.simulate_votes(3_000, 4, seed=0)
    early, late = (jaxeval.Battles.from_pandas(votes.iloc[:n]) for n in (1_000, 3_000))
    first, board = (jaxeval.leaderboard(x, n_resamples=60, progress=False) for x in (early, late))
    from jaxeval.pages.history import with_board

    history = with_board(None, first, pd.Timestamp("2026-09-11").date())
    history = with_board(history, board, pd.Timestamp("2026-09-13").date())
    jaxeval.page(board, tmp_path / "page.html", history=history, made="2026-09-13")
    page = visit(tmp_path / "page.html", "#view=history")
    assert "2026-09-11" in page.locator(".panel.history table thead").inner_text()
    assert page.locator(".panel.history path.line").count() == 4
    open_view(page, "Board")
    assert "Since 2026-09-11" in page.locator(".panel.board thead").inner_text()
    for cell in page.locator(".panel.board td.since > span").all():  # in colour where it is more than chance gives
        moved, half = map(float, re.findall(r"[\d.]+", cell.get_attribute("title").replace("95%", "")))
        assert (cell.get_attribute("class") == "same") == (moved <= half)


@pytest.mark.slow
def test_moves_of_models_that_are_new_or_were_unrated(visit, tmp_path, battles):
    board = jaxeval.leaderboard(battles, n_resamples=60, progress=False)
    earlier = board.iloc[1:].copy()
    earlier.loc[earlier.index[0], ["rating", "rank"]] = [float("inf"), pd.NA]
    jaxeval.page(board, tmp_path / "page.html", earlier=earlier)
    page = visit(tmp_path / "page.html")
    assert page.locator(".panel.board td.since").all_inner_texts()[:2] == ["new", "was unrated"]


@pytest.mark.slow
def test_rules_stand_between_tiers_alone(visit, tmp_path, battles):
    """A model without a tier, which is told apart from nobody, stands within that of its neighbours."""
    board = jaxeval.leaderboard(battles, n_resamples=60, progress=False)
    board["tier"] = pd.array([1, 1, pd.NA, 1, 2, 2], dtype="Int64")
    jaxeval.page(board, tmp_path / "page.html")
    fifth = [False, False, False, False, True, False]
    for javascript in (True, False):
        page = visit(tmp_path / "page.html", java_script_enabled=javascript)
        rows = page.locator("table.board tbody tr:not(.label)").all()
        assert [row.get_attribute("class") == "tier" for row in rows] == fifth
    page = visit(tmp_path / "page.html")
    assert page.locator("table.board tr.label").all_text_contents() == ["Tier 1", "Tier 2"]
    chart = visit(tmp_path / "page.html", "#view=intervals")
    assert chart.locator(".panel.intervals line.rule").count() == 1


def test_copies_escape_names_as_python_does(scripts, tmp_path):
    shown = list(map(shown_name, NAMES))
    page = scripts("dom.js", "format.js", "copying.js")
    assert page.evaluate("names => names.map(markdownText)", shown) == list(map(markdown_text, shown))
    assert page.evaluate("names => names.map(latexText)", shown) == list(map(latex_text, shown))
    column = "{id: 'name', title: 'name', value: (x) => x, text: (x) => x}"
    text = page.evaluate(f"names => asCsv([{column}], names)", shown)
    jaxeval.write_table(pd.DataFrame({"name": shown}), tmp_path / "names.csv")
    with (tmp_path / "names.csv").open(newline="") as file:
        assert list(csv.reader(io.StringIO(text, newline=""))) == list(csv.reader(file))


@pytest.mark.slow
def test_dark_mode_print_and_narrow_screens(visit, file):
    dark = visit(file, color_scheme="dark")
    light = visit(file, color_scheme="light")
    colour = "getComputedStyle(document.body).backgroundColor"
    assert dark.evaluate(colour) != light.evaluate(colour)
    light.get_by_role("button", name="Light / dark").click()
    assert light.evaluate(colour) == dark.evaluate(colour)
    light.emulate_media(media="print")
    assert light.evaluate(colour) == "rgb(255, 255, 255)"  # paper is light, whatever the screen was
    assert light.locator(".views").is_hidden()
    assert light.evaluate("document.documentElement.scrollWidth") <= 1280
    assert light.locator(".panel.board table").is_visible()
    narrow = visit(file, viewport={"width": 360, "height": 700})
    assert narrow.evaluate("document.documentElement.scrollWidth") <= 360


def test_readable_without_script(visit, file):
    page = visit(file, java_script_enabled=False)
    assert page.get_by_role("row").filter(has_text="model-3").count() == 2  # of two languages


@pytest.mark.parametrize(
    "view",
    [
        "board",
        *(
            pytest.param(view, marks=pytest.mark.slow)
            for view in ("intervals", "prices", "pairs", "categories", "what-if", "about")
        ),
    ],
)
@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_accessibility(visit, file, view, scheme):
    if os.environ.get("CI") != "true":
        pytest.importorskip("axe_playwright_python")
    from axe_playwright_python.sync_playwright import Axe

    page = visit(file, f"#view={view}", color_scheme=scheme)
    page.locator(f".panel.{view}").wait_for()
    page.wait_for_timeout(150)
    found = Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


def test_hostile_names_are_shown_and_never_run(visit, tmp_path):
    shown = [name for name in NAMES if name.strip()]
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, len(shown), (2, 5_000))
    table = pd.DataFrame({"model_a": np.array(shown, object)[a], "model_b": np.array(shown, object)[b]})
    table["winner"] = rng.choice(["model_a", "model_b", "tie"], 5_000)
    battles = jaxeval.Battles.from_pandas(table[a != b])
    board = jaxeval.leaderboard(battles, n_resamples=60, progress=False)
    jaxeval.page(board, tmp_path / "page.html", battles=battles)
    page = visit(tmp_path / "page.html")
    page.on("dialog", lambda dialog: pytest.fail(dialog.message))
    assert len(names(page)) == len(shown)
    for view in ("Intervals", "Pairs", "What if", "How it was made"):
        open_view(page, view)
    page.locator(".panel.what-if tbody tr").first.wait_for(state="attached")
    assert page.locator("script").count() == 2
    open_view(page, "Board")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("group", name="Copy the table").get_by_role("button", name="CSV").click()
    text = copied(page)
    assert "'=cmd" in text


@pytest.mark.parametrize("hash", [
    "#board=none&view=nothing&sort=-zzz&q=%3Cscript%3E",
    pytest.param("#view=what-if&without=a&drop=x%09y%09z&gauge=model&anchor=none&at=1e400&parts=q",
        marks=pytest.mark.slow),
    pytest.param("#%", marks=pytest.mark.slow),
    pytest.param("#view=pairs&top=-5&map=evil&min=NaN", marks=pytest.mark.slow),
    pytest.param("#" + "q=" + "x" * 5_000, marks=pytest.mark.slow),
    pytest.param("#__proto__=1&constructor=2", marks=pytest.mark.slow),
])  # fmt: skip
def test_hostile_addresses(visit, file, hash):
    page = visit(file, hash)
    page.wait_for_timeout(100)
    assert page.get_by_role("tablist", name="Views").is_visible()
    open_view(page, "Board")
    board = page.locator(".panel.board")
    board.get_by_label("Search").fill("model")  # the page still obeys
    board.get_by_label("Votes, at least").fill("0")
    assert len(names(page)) == 6


@pytest.mark.slow
def test_three_hundred_models(visit, tmp_path):
    battles = jaxeval.simulate_battles(60_000, 300, seed=0)
    fit = jaxeval.fit_bradley_terry(battles)
    jaxeval.page(fit, tmp_path / "page.html", battles=battles)
    page = visit(tmp_path / "page.html", "#view=what-if")
    page.locator(".panel.what-if tbody tr").first.wait_for(timeout=20_000)
    assert_as_python(page, battles)


@pytest.mark.parametrize("lacking", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_page_without_room_shows_the_same_numbers_and_says_what_it_lacks(
    visit, tmp_path, monkeypatch, battles, lacking
):
    """Of two languages: the script is packed; where that is not enough, votes by pair and days of the past go."""
    few = battles.filter(lambda votes: votes["language"].isin(["English", "Chinese"]))
    board = jaxeval.leaderboard(few, by="language", n_resamples=60, progress=False)
    whole, small = tmp_path / "whole.html", tmp_path / "small.html"
    jaxeval.page(board, whole, battles=few, title="Two languages")
    monkeypatch.setattr("jaxeval.pages.document.MOST_BYTES", 60_000 if lacking else len(whole.read_bytes()) - 20_000)
    jaxeval.page(board, small, battles=few, title="Two languages")
    texts = []
    for path in (whole, small):
        page = visit(path)
        texts.append([])
        for view in ("Board", "Intervals", "Categories"):
            open_view(page, view)
            texts[-1].append(page.locator(f".panel.{view.lower()}").text_content())
        left_out = lacking and path == small
        assert ("No room on a page" in texts[-1][0]) == left_out
        open_view(page, "What if")
        panel = page.locator(".panel.what-if")
        panel.get_by_text("What-if is off: the page has room" if left_out else "Fitted ").wait_for()
    rest = [re.sub("No room on a page.*?[.]", "", text) for text in texts[1]]
    assert rest == texts[0]


@pytest.mark.slow
def test_sections_of_results(visit, tmp_path):
    scores = jaxeval.score_leaderboard(jaxeval.simulate_scores(60, 4), n_resamples=60, progress=False)
    audit = jaxeval.audit(simulated(), parts=["board", "rank_evidence"], n_resamples=60, progress=False)
    jaxeval.page({"Scores": scores, "Audit": audit}, tmp_path / "page.html")
    page = visit(tmp_path / "page.html")
    page.get_by_role("button", name="Score", exact=True).click()
    page.get_by_role("button", name="Score", exact=True).click()
    assert names(page, "results")[0] in set(scores["model"][scores["score"] == scores["score"].min()])
    page.get_by_role("tab", name="Audit: Can this leaderboard be believed?").click()
    assert audit.verdict[0] in page.locator(".panel.results").inner_text()


@pytest.mark.slow
def test_readers_slide_the_value_of_a_point(visit, tmp_path):
    index = jaxeval.capability_index(jaxeval.simulate_benchmark_scores(6, 8, seed=1), n_resamples=60, progress=False)
    jaxeval.page(jaxeval.pareto_front(index, {f"model-{k}": 4.0**k for k in range(1, 7)}), tmp_path / "page.html")
    page = visit(tmp_path / "page.html")
    assert page.locator("img.figure").evaluate("image => image.naturalWidth") > 300
    slider, first = page.get_by_role("slider"), page.get_by_role("region", name="Value of a point").locator("tbody tr")
    slider.press("Home")
    assert "model-1" in first.first.inner_text()
    slider.press("End")
    assert "model-6" in first.first.inner_text()


@pytest.mark.slow
def test_a_page_of_players_names_no_model(visit, tmp_path):
    votes, sides = jaxeval.simulate_votes(900, 5, seed=0, details=True), {"model_a": "player_1", "model_b": "player_2"}
    for side in sides:
        votes[side] = votes[side].astype(str).str.replace("model", "player")
    games = jaxeval.Battles.from_pandas(votes.rename(columns=sides), **sides, keep=["language"])
    boards = jaxeval.leaderboard(games, by="language", n_resamples=60, progress=False)
    jaxeval.page(boards, tmp_path / "games.html", battles=games)
    page = visit(tmp_path / "games.html")
    views = page.get_by_role("tablist", name="Views").get_by_role("tab").all_inner_texts()
    assert len(views) > 4
    for view in views:
        open_view(page, view)
        page.wait_for_timeout(300)
        shown = page.locator(".panel:not([hidden])").inner_html()
        shown = re.sub(r'(?:class|value|data-sort)="[^"]*"', "", shown)  # labels and hints stay
        assert re.search(r"\bplayers?\b", shown, re.IGNORECASE), view
        assert not re.search(r"\bmodels?\b", shown, re.IGNORECASE), view
