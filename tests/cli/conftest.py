import pytest


@pytest.fixture
def undrawn(monkeypatch):
    """Figures of a folder are made, and their files stay empty: the tests of figures draw them, which takes longer."""

    def touch(figures, folder):
        for name in figures:
            (folder / f"{name}.png").touch()

    monkeypatch.setattr("jaxeval.show.files.save_figures", touch)


@pytest.fixture(autouse=True, scope="module")
def as_in_a_process_of_the_command(all_on_the_host):
    """Which has not imported JAX yet."""
