"""``jaxeval FILE``: which command fits a file, with the line to type."""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Sequence
from functools import partial
from glob import glob
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import click

from jaxeval.cli.command_table import ROWS
from jaxeval.cli.terminal import print_bytes
from jaxeval.data.file_lists import as_typed, names_of
from jaxeval.data.remote_names import FileName, base_name, is_remote
from jaxeval.errors import ColumnError, DataError
from jaxeval.wording import counted, did_you_mean, named, visible, visible_line

if TYPE_CHECKING:
    from jaxeval.cli.uses import Use
    from jaxeval.data.formats import Head

_MOST = 12  # columns to name
_PLACES = {"NEW_FILE", "OTHER_FILE", "LABELLED_FILE", "VOTES_FILE", "VERDICTS_FILE"}  # of further files in a line
_ROLES = {"--model-a", "--model-b", "--winner", "--model", "--item", "--score", "--ranking"}
_OF_NUMBERS = {"--count", "--weight", "--target"}  # where one was typed, a line without it is no help
_MOST_HEADS, _MOST_BYTES = 100, 2**28  # of the files of a folder, which are looked at beside the first
_MOST_NEAR = 10_000  # files of a folder among which a mistyped one is sought


def is_file(text: str) -> bool:
    """Return whether an argument is a file, a folder, or a pattern that matches some, here or elsewhere."""
    matches = any(sign in text for sign in "*?[") and bool(glob(text))
    return matches or is_remote(text) or text == "-" or os.path.exists(text)


def no_such_file(text: str) -> str | None:
    """Return the error about an argument that looks like a file's place; None if it does not."""
    if os.path.islink(text):
        return f"{text!r} is a link to {os.readlink(text)!r}, which does not exist"
    if any(sign in text for sign in "*?["):
        return f"There is no file {text!r}, and none that matches it"
    folder, name = os.path.split(text)
    if not folder and "." not in text.strip("-"):
        return None
    if folder and not os.path.isdir(folder):
        return f"There is no folder {folder!r}"
    try:
        with os.scandir(folder or ".") as entries:
            near = sorted(entry.name for entry in islice(entries, _MOST_NEAR) if not entry.name.startswith("."))
    except OSError:  # it may not be listed
        near = []
    where = f" in {folder!r}" if folder else ""
    return f"There is no file {name!r}{where}{did_you_mean(name, near) if name else ''}"


class _Look(click.Command):
    """Says of an option that it belongs to a command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Return what was typed."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            ctx.fail(
                f"No such option {error.option_name!r}: a file without a command is only looked at. Options belong to "
                f"commands, as in jaxeval COMMAND {ctx.info_name} {error.option_name}"
            )


@click.command(
    "FILE", cls=_Look, hidden=True, epilog="All commands: jaxeval --help", options_metavar="[--help]",
    context_settings={"help_option_names": ["-h", "--help"]},
)  # fmt: skip
@click.argument("files", nargs=-1, required=True, metavar="[MORE_FILES]...")
def look(files: tuple[FileName, ...]) -> None:
    """Look at FILE and say which commands fit it, with the lines to type."""
    from jaxeval.cli.file_uses import nothing_in, uses_of
    from jaxeval.data.formats import read_head
    from jaxeval.data.harness_formats import telling_file

    read = names_of(files)
    telling = telling_file(read)
    read = [telling, *(name for name in read if name != telling)]
    head = read_head(telling)
    uses, nothing = uses_of(head, partial(_heads, read[1:])), nothing_in(head)
    for name in head.doubled:
        if any(repr(name) in use.why for use in uses):
            uses, nothing = [], f"Several columns are called {visible_line(name)!r}: rename or drop all but one."
    lines = [_what(read, head), ""]
    if len(files) == 2:
        paths = names_of(files[1:])
        second = read_head(paths[0])
        others = uses_of(second)
        together = _calibrated(uses, others, files) or _calibrated(others, uses, files[::-1])
        if {*head.names} != {*second.names}:
            uses = [use for use in uses if use.words in [other.words for other in others]]
            lines = [_what(names_of(files[:1]), head), _what(paths, second), ""]
            nothing = "The two files differ in their columns, and no line fits both: look at each by itself."
        uses = [*together, *(use for use in uses if not together or "OTHER_FILE" not in use.words)]
        uses = _of_two(uses, others)
    lines += _suggested(uses, files) if uses else _needs(head, files) if nothing is None else [nothing]
    print_bytes(("\n".join(map(visible, lines)) + "\n").encode())


def _heads(files: Sequence[FileName]) -> list[Head]:
    """Return the heads of files, without those that cannot be read, and no more than a few seconds take."""
    from jaxeval.data.formats import read_head

    heads, size = [], 0
    for name in files[:_MOST_HEADS]:
        size += 0 if is_remote(name) else os.path.getsize(name)
        if is_remote(name) or size > _MOST_BYTES:
            break
        with contextlib.suppress(DataError):
            heads.append(read_head(name))
    return heads


def _what(read: Sequence[FileName], head: Head) -> str:
    shown = visible_line(as_typed(read[0]))
    text = f"{shown}: {head.form}"
    if head.names and head.document is None:
        names = named([repr(visible_line(name)) for name in head.names], _MOST)
        text += f", {counted(len(head.names), 'column')}: {names}"
    elif head.names and head.saved is None:
        text += f" with {named([repr(visible_line(key)) for key in head.names], _MOST)}"
    more = len(read) - 1
    return text + (f"\n(the first of {len(read):,} files; the others are taken to be like it)" if more else "")


def _of_two(uses: list[Use], others: Sequence[Use]) -> list[Use]:
    """Return the uses of two files, ``others`` those of the second one; two files of votes may also be compared."""
    board = next((use for use in uses if use.words[0] == "leaderboard" and "--by" not in use.words), None)
    if board is None or "NEW_FILE" in board.words or board.words not in [use.words for use in others]:
        return uses
    words = ("compare-boards", *board.words[1:])
    return [board._replace(question="Which models moved from the first file to the second?", words=words), *uses]


def _calibrated(uses: Sequence[Use], others: Sequence[Use], files: Sequence[FileName]) -> list[Use]:
    """Return the uses of the first file, which has human labels, for the answers of the second one."""
    labelled, answers = map(str, files)
    blanks = {"{}": labelled, "OTHER_FILE": answers}
    return [
        use._replace(words=tuple(blanks.get(word, word) for word in use.words), open="")
        for use in uses
        if "OTHER_FILE" in use.words and use.words[0] in [other.words[0] for other in others]
    ]


def _suggested(uses: Sequence[Use], files: Sequence[FileName]) -> list[str]:
    lines: list[str] = []
    shown: set[str] = set()
    for number, use in enumerate(uses):
        lines += [f"{use.question}", f"  {line_of(use, files)}"]
        for head, text in (("found", use.why), ("note", use.open)):
            if text and text not in shown:
                lines.append(f"  {head}: {text}")
                shown.add(text)
        lines += [""] if number < len(uses) - 1 else []
    return lines


def line_of(use: Use, files: Sequence[FileName]) -> str:
    """Return what to type."""
    if use.words[0] == "python":
        return _quoted([*use.words[:-1], use.words[-1].format(str(files[0]))])
    words: list[str] = []
    for before, word in zip(("", *use.words), use.words, strict=False):
        names = files[:1] if before.startswith("--") else files  # an option takes one file
        words += [str(as_typed(name)) for name in names] if word == "{}" else [word]
    return _quoted(["jaxeval", *words])


def _quoted(words: Sequence[str]) -> str:
    """Quote words for a shell, those with single quotes in double ones where nothing in them means more there."""
    doubled = ["'" in word and not set(word) & {*"$`\\!"} for word in words]
    return " ".join(
        '"' + word.replace('"', r"\"") + '"' if inside else shlex.quote(word)
        for word, inside in zip(words, doubled, strict=True)
    )


#: Commands that read votes as the leaderboard does, or with further options.
_OF_VOTES = ("leaderboard", "compare-boards", "audit", "next", "panel")
#: Options for columns, where the values say nothing.
_BLANKS = dict.fromkeys(_OF_VOTES, "--model-a COLUMN --model-b COLUMN --winner COLUMN") | {
    "scores": "--model COLUMN --item COLUMN --score COLUMN",
    "rankings": "--ranking COLUMN",
}


class FileUses(NamedTuple):
    """What the files of a command are fit for."""

    files: list[FileName]
    uses: list[Use]
    nothing: str | None  # why there is no use, where a column is lacking


def found_in(error: DataError, ctx: click.Context) -> FileUses | None:
    """Look at the files of a command that fails; None where the error is not about them."""
    paths = ctx.params.get("files") or [ctx.params.get("file")]
    files = [name for name in paths if name is not None]
    lacks = isinstance(error, ColumnError)
    if error.file is None and not lacks:
        return None
    from jaxeval.cli.file_uses import nothing_in, uses_of  # which imports pandas
    from jaxeval.data.formats import read_head
    from jaxeval.data.harness_formats import telling_file

    try:
        read = names_of(files) if files else []
        if error.file not in (None, *map(base_name, (*files, *read))):
            return None
        telling = telling_file(read)
        head = read_head(telling)
        others = partial(_heads, [name for name in read if name != telling])
        uses = [use for use in uses_of(head, others) if not _PLACES & {*use.words}]
        return FileUses(files, uses, nothing_in(head) if lacks and not uses else None)
    except (ValueError, OSError, ImportError):
        return None


def as_other_shape(found: FileUses | None, command: str | None, typed: Sequence[str]) -> list[str] | None:
    """Return the command, and its arguments, of files of another shape for which `leaderboard` was typed.

    None where the shape is not sure, or the user named columns.
    """
    if command != "leaderboard" or {word.partition("=")[0] for word in typed} & (_ROLES | _OF_NUMBERS):
        return None
    use = found.uses[0] if found and found.uses else None
    if use is None or use.read is None or not use.read.is_sure:
        return None
    return [use.words[0], *typed, *use.read.options()]


def with_line(error: DataError, found: FileUses | None, ctx: click.Context, typed: Sequence[str]) -> DataError:
    """Return the error about the files of a command, begun with the line to type where their rows say one.

    ``typed`` stood after the command.
    """
    command, text, lacks = str(ctx.info_name), str(error), isinstance(error, ColumnError)
    if found is None:
        return error
    files, uses, nothing = found
    by = ctx.params.get("by") or ()
    groups = {by} if isinstance(by, str) else {*by}  # which are no results
    uses = [use for use in uses if not groups & {*use.words}]
    fitting = [use for use in uses if use.words[0] == command and "--by" not in use.words]
    if not fitting and command in _OF_VOTES:
        votes = [use for use in uses if use.words[0] == "leaderboard"]
        fitting = [use._replace(words=(command, *typed, *(x for x in use.words[1:] if x != "{}"))) for use in votes]
    if command in ("compare-scores", "plan-scores"):
        models = [str(ctx.params[name]) for name in ("a", "b") if name in ctx.params]
        fitting = [use._replace(words=(command, *models, *use.words[1:])) for use in uses if use.words[0] == "scores"]
    for use in fitting[:1]:
        if {*use.words[1:]} <= {"{}", *typed} or ({*typed} & _OF_NUMBERS) - {*use.words}:
            return error
        text = f"say it so: {line_of(use, files)}\n{text}; found: {use.why}{'; ' * bool(use.open)}{use.open}"
    if not fitting and uses:
        text += f"; the file rather fits: {line_of(uses[0], files)}"
    if nothing is not None:
        text += f". {nothing}"
    elif (
        not fitting
        and not any(use.read for use in uses[:1])
        and command in _BLANKS
        and lacks
        and "no column" in str(error)
        and not {*typed} & _ROLES
    ):
        text = f"say it so: {shlex.join(['jaxeval', command, *typed])} {_BLANKS[command]}\n{text}"
    error.args = (text, *error.args[1:])
    return error


def _needs(head: Head, files: Sequence[FileName]) -> list[str]:
    """Return what each command reads, for a file that no command is known to fit."""
    reason = "Its columns do not say" if head.names and head.document is None else "It does not say"
    needs = {row.name: row.needs for row in ROWS.values() if row.needs}
    width = max(map(len, needs))
    return [
        f"{reason} which command fits. What each of them reads:",
        *(f"  {name.ljust(width)}  {text}" for name, text in needs.items()),
        "Columns may have other names: jaxeval COMMAND --help says by which options they are named, as in "
        f"jaxeval leaderboard {shlex.quote(str(files[0]))} {_BLANKS['leaderboard']}",
    ]
