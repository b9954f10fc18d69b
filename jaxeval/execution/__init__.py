"""How work is run: precision, devices, processes, chunks, checkpoints, progress."""
