"""The notebooks of the documentation run."""

import json
from pathlib import Path

import matplotlib
import pytest
import restp

matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "docs/notebooks").glob("*.ipynb"))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_cell_runs(notebook, monkeypatch):
    """Every cell, with one seed: more of them only take longer."""
    run = restp.run
    monkeypatch.setattr(restp, "run", lambda *args, **keys: run(*args, **keys | {"runs": 1}))
    monkeypatch.chdir(notebook.parent)
    names = {}
    for cell in json.loads(notebook.read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), notebook.name, "exec"), names)
    assert pyplot.get_fignums(), "it draws"
    pyplot.close("all")


def test_there_are_notebooks():
    assert NOTEBOOKS
