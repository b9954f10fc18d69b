"""What tests see of the chunks that lanes are cut into."""

from jaxeval.execution import lanes


def chunk_sizes(monkeypatch):
    """A list of the lanes of a chunk, call by call, which runs fill."""
    sizes, placed = [], lanes._placed

    def recorded(parts, of, size, per_device):
        sizes.append(size)
        return placed(parts, of, size, per_device)

    monkeypatch.setattr(lanes, "_placed", recorded)
    return sizes
