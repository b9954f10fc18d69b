"""Tools for agents: what they may read, and a client that calls them over standard input and output."""

import asyncio
import sys

import click
import pandas as pd
import pytest

from jaxeval.cli.main import main
from jaxeval.integrations import mcp_server
from jaxeval.integrations.mcp_server import RefusedError, checked_path


@pytest.fixture
def folder(tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    rows = [(model, item, int(item % 5 > 0 or model == "new")) for model in ("new", "old") for item in range(300)]
    pd.DataFrame(rows, columns=["model", "item", "score"]).to_csv(own / "scores.csv", index=False)
    (tmp_path / "secret.csv").write_text("a\n1\n")
    return own.resolve()


def test_tools_read_their_folders_alone(folder, monkeypatch):
    assert checked_path("scores.csv", [folder]) == folder / "scores.csv"
    assert checked_path(str(folder / "*.csv"), [folder]).name == "*.csv"
    assert checked_path(".", [folder]).resolve() == folder
    for name in (
        "../secret.csv",
        str(folder.parent / "secret.csv"),
        "/etc/passwd",
        "../*.csv",
        "..",
        "*/../../secret.csv",
    ):
        with pytest.raises(RefusedError, match="is not in"):
            checked_path(name, [folder])
    with pytest.raises(RefusedError, match="another machine"):
        checked_path("https://example.com/votes.csv", [folder])
    with pytest.raises(RefusedError, match="there is no"):
        checked_path("nothing.csv", [folder])
    monkeypatch.setattr(mcp_server, "MOST_BYTES", 10)
    with pytest.raises(RefusedError, match="a tool reads 10"):
        checked_path("scores.csv", [folder])
    (folder / "link.csv").symlink_to(folder.parent / "secret.csv")
    for name in ("link.csv", ".", "*.csv"):
        with pytest.raises(RefusedError, match="is not in"):
            checked_path(name, [folder])


def test_tools_offer_nothing_that_writes():
    """Nor SQL, nor what runs elsewhere."""
    for name in mcp_server.COMMANDS:
        command = main.get_command(click.Context(main), name)
        offered = {param.name for param in mcp_server._offered(command)}
        assert offered & {"files", "file", "calibration"}
        assert not offered & {
            "out",
            "plot",
            "html",
            "path",
            "state",
            "where",
            "checkpoint",
            "distributed",
            "summary",
            "push",
        }


def test_long_output_is_cut():
    assert mcp_server._cut("x" * (mcp_server.MOST_CHARACTERS + 5)).endswith(
        "and 5 more characters: ask for fewer rows (top)"
    )


def test_a_client_calls_them(folder):
    pytest.importorskip("mcp", reason="pip install 'jaxeval[mcp]': .ci/run does so in an environment of its own")
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    command = [sys.executable, "-c", "from jaxeval.integrations.mcp_server import run; run()", str(folder)]

    async def calls():
        async with Client(stdio_client(StdioServerParameters(command=command[0], args=command[1:]))) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            looked = await client.call_tool("look", {"file": "scores.csv"})
            gate = await client.call_tool(
                "compare_scores", {"a": "new", "b": "old", "files": ["scores.csv"], "margin": 0.05, "gate": True}
            )
            refused = await client.call_tool("scores", {"files": ["../secret.csv"]})
            return tools, looked, gate, refused

    tools, looked, gate, refused = asyncio.run(calls())
    assert set(tools) == {"look", *(name.replace("-", "_") for name in mcp_server.COMMANDS)}
    schema = tools["compare_scores"].input_schema["properties"]
    assert schema["margin"]["description"].startswith("The smallest difference that matters")
    assert all(tool.annotations.read_only_hint for tool in tools.values())
    assert "jaxeval compare-scores new old" in looked.structured_content["output"]
    assert gate.structured_content["exit_code"] == 0
    assert gate.structured_content["output"].startswith("PASS: new is not worse than old")
    assert refused.is_error
    assert "is not in" in refused.content[0].text
