"""Run the notebooks and save them with their outputs.

python notebooks/save.py [NAME...]                  # all, or those named, on simulated data only
python notebooks/save.py --data FOLDER [NAME...]    # and on the public data in FOLDER

Outputs are the same from run to run: nothing of the machine is kept, such as times, paths and addresses in memory.
Data sets whose licence does not let us show what we compute from them (`PRIVATE`) are hidden from the notebooks, which
say so.
"""

import argparse
import base64
import io
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient
from PIL import Image

HERE = Path(__file__).parent
#: Without a licence, and for research that earns nothing. The notebooks run on them where a reader has them.
PRIVATE = {
    "softelo_sample.csv",
    "softelo_sample_reference.csv",
    "alpacaeval_item_preferences.parquet",
    "metr_runs_2025_02.parquet",
}


def executed(path: Path, data: Path) -> Any:
    """A notebook, run from its first cell to its last one."""
    book = nbformat.read(path, as_version=4)
    own = {"JAXEVAL_DATA": str(data), "JAX_PLATFORMS": "cpu", "COLUMNS": "100"}
    client = NotebookClient(book, timeout=600, resources={"metadata": {"path": str(HERE)}})
    client.execute(env={**os.environ, **own})
    return tidy(book)


def tidy(book: Any) -> Any:
    """Leave out what differs from run to run."""
    book.metadata = {"kernelspec": book.metadata["kernelspec"], "language_info": {"name": "python"}}
    for number, cell in enumerate(book.cells):
        cell.metadata.pop("execution", None)
        if cell.cell_type != "code":
            continue
        merged: list[Any] = []
        for output in cell.outputs:
            output.pop("transient", None)
            if output.output_type == "stream" and merged and merged[-1].get("name") == output.name:
                merged[-1].text += output.text
            else:
                merged.append(output)
            for kind, content in output.get("data", {}).items():
                if kind == "text/html":  # pandas names the tables that it colours by chance
                    output.data[kind] = re.sub(r"\bT_[0-9a-f]{5}", f"T_{number:05d}", content)
                if kind == "image/png":
                    output.data[kind] = smaller(content)
        cell.outputs = merged
    return book


def smaller(png: str) -> str:
    """A figure in a palette of 64 colours, at most 800 pixels wide."""
    figure = Image.open(io.BytesIO(base64.b64decode(png))).convert("RGB")
    figure.thumbnail((800, 4000), Image.Resampling.LANCZOS)
    file = io.BytesIO()
    figure.quantize(64, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(file, "png", optimize=True)
    return base64.b64encode(file.getvalue()).decode()


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="notebooks, such as leaderboard; by default all")
    parser.add_argument("--data", type=Path, help="a folder of public data")
    options = parser.parse_args()
    paths = [HERE / f"{name}.ipynb" for name in options.names] or sorted(HERE.glob("*.ipynb"))
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        if options.data:
            data.mkdir()
            for path in options.data.resolve().iterdir():
                if path.name not in PRIVATE:
                    (data / path.name).symlink_to(path)
        for path in paths:
            nbformat.write(executed(path, data), path)
            print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB", flush=True)


if __name__ == "__main__":
    main()
