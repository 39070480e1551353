"""What `import elastic_core` offers: about ten names, imported when first used, and the README's lines that use them."""

import ast
import json
import os
import re
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

import elastic_core
from elastic_core.data.source_catalog import at_hand

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_name_is_there_and_nothing_is_imported_before_it_is_used(tmp_path: Path) -> None:
    assert len(elastic_core.__all__) <= 12
    for name in elastic_core.__all__:
        assert getattr(elastic_core, name).__doc__, name
    assert re.fullmatch(r"\d+\.\d+\.\d+", elastic_core.__version__) and (ROOT / "elastic_core/py.typed").exists()
    with pytest.raises(AttributeError, match="nonsense"):
        _ = elastic_core.nonsense
    code = "import sys, elastic_core; assert not {'torch', 'pandas', 'numpy'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=240)
    code = """if True:
        import sys
        import torch
        heavy = {'torch._dynamo', 'sympy'} if torch.__version__ >= '2.13' else set()  # older ones need them for shapes
        from elastic_core import models, recipes
        from elastic_core.core.config import ModelConfig
        for name in models.model_names():
            models.outline(ModelConfig.known[name](), 50)
            for variant in models.model_class(name).variants:
                models.outline(recipes.model_settings(name, **variant.settings), 50)
        assert not heavy & set(sys.modules), 'seconds of imports, for shapes alone'
    """
    subprocess.run([sys.executable, "-c", code], check=True, timeout=240, env={**os.environ, "PYTHONPATH": str(ROOT)})


def test_the_readme_s_lines_of_python_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In less time, on a file that is made here."""
    block = next(b for b in re.findall(r"```python\n(.+?)```", README, re.DOTALL) if "import elastic_core" in b)
    assert "minutes=5" in block and len(block.splitlines()) <= 10
    rows = [f"cust-{u:03},sku-{(u * 7 + n * n) % 12},{n}" for u in range(80) for n in range(8)]
    (tmp_path / "my-clicks.csv").write_text("\n".join(["visitor,page,at", *rows]))
    monkeypatch.chdir(tmp_path)
    exec(compile(block.replace("minutes=5", "minutes=0.02"), "README.md", "exec"), {})
    said = capsys.readouterr().out
    assert "title" in said and "gate" in said and "coverage@10" in said and list(tmp_path.glob("checkpoints/*/ranks.safetensors"))


def test_the_cells_of_the_notebook_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """In less time, and on a made-up world where the films are not on this machine."""
    notebook = json.loads((ROOT / "elastic_core" / "notebook.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    names: dict[str, Any] = {}
    assert any("minutes=2" in cell for cell in cells)
    assert not any(cell.get("outputs") for cell in notebook["cells"]), "what films are called is not ours to hand on"
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for cell in cells:
        text = cell.replace("minutes=2", "minutes=0.02")
        text = text if at_hand("ml-100k") else text.replace('"ml-100k"', '"planted"')
        *lines, last = ast.parse(text).body
        exec(compile(ast.Module(lines, []), "notebook.ipynb", "exec"), names)
        shown = eval(compile(ast.Expression(last.value), "notebook.ipynb", "eval"), names) if isinstance(last, ast.Expr) else None
        assert shown is not None and (hasattr(shown, "_repr_html_") or len(repr(shown)) > 20), cell
    assert names["run"].finished and len(names["nearest"]) == 6 and names["nearest"].index[0] == names["star_wars"]


def test_the_moving_picture_is_what_its_script_draws() -> None:
    pictures = ROOT / "checkpoints" / "pictures"
    drawn = runpy.run_path(str(pictures / "make_search.py"))["draw"]()
    assert (pictures / "search.svg").read_text(encoding="utf-8") == drawn
