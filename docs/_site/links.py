"""Check every link of a built site: what it names in the site is there, and other addresses are well formed.

python docs/_site/links.py FOLDER

Nothing is fetched.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class _Page(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors = {"", "top"}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect what the tag leads to, and what leads to it."""
        for name, value in attrs:
            if name in ("href", "src") and value is not None:
                self.links.append(value)
            if name == "id" or (name == "name" and tag == "a"):
                self.anchors.add(value or "")


def broken_links(folder: Path) -> list[str]:
    """Links of the pages below a folder that lead nowhere, each with its page."""
    pages = {path: _Page(path.read_text("utf-8")) for path in sorted(folder.resolve().rglob("*.html"))}
    found = []
    for path, page in pages.items():
        for link in dict.fromkeys(page.links):
            try:
                why = _fault(path, link, pages)
            except ValueError as error:
                why = str(error)
            if why:
                found.append(f"{path.relative_to(folder.resolve())}: {link}: {why}")
    return found


def _fault(path: Path, link: str, pages: dict[Path, _Page]) -> str | None:
    parts = urlsplit(link)
    if parts.scheme in ("http", "https"):
        return None if "." in (parts.hostname or "") and " " not in link else "no address of a page"
    if parts.scheme or parts.netloc:
        return None if parts.scheme in ("mailto", "data", "hf", "s3") else "an address of another kind"
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.is_file():
        return "no such file"
    anchors = pages[target].anchors if target in pages else {unquote(parts.fragment)}
    return None if unquote(parts.fragment) in anchors else "no such anchor"


if __name__ == "__main__":
    broken = broken_links(Path(sys.argv[1]))
    print(*broken, sep="\n", end="\n" if broken else "")
    sys.exit(bool(broken))
