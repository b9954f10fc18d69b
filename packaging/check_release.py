"""Before a release: tag, package, citation, recipe and changelog name one version, and the changelog has its date.

python packaging/check_release.py v1.0.0
"""

import re
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]


def versions() -> dict[str, str]:
    """The version by the file that names it."""
    own = re.search(r'__version__ = "(.+)"', (ROOT / "jaxeval/_version.py").read_text())
    recipe = re.search(r"^  version: (.+)$", (ROOT / "packaging/conda/recipe.yaml").read_text(), re.MULTILINE)
    first = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert own is not None
    assert recipe is not None
    assert first is not None
    return {
        "jaxeval/_version.py": own[1],
        "CITATION.cff": yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"],
        "packaging/conda/recipe.yaml": recipe[1].strip('"'),
        "CHANGELOG.md": first[1],
    }


def unreleased() -> bool:
    """Whether the changelog calls its first version unreleased."""
    heading = re.search(r"^## .*", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert heading is not None
    return "unreleased" in heading[0].lower()


def main(tag: str) -> int:
    """0 if all files name the version of the tag, and it is released; else 1, with the reasons on standard error."""
    wrong = {name: found for name, found in versions().items() if f"v{found}" != tag}
    for name, found in wrong.items():
        print(f"{name} names version {found}, and the tag is {tag}: change the file, or the tag", file=sys.stderr)
    late = unreleased()
    if late:
        print("CHANGELOG.md calls its version unreleased: write the date in its heading", file=sys.stderr)
    return int(bool(wrong) or late)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
