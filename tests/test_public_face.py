"""What `import elastic_core` offers: about ten names, imported when first used, and the README's lines that use them."""

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import elastic_core
from elastic_core import recipes

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
        for name in models.names():
            models.outline(ModelConfig.known[name](), 50)
            for variant in models.model_class(name).variants:
                models.outline(recipes.model_settings(name, **variant.settings), 50)
        assert not heavy & set(sys.modules), 'seconds of imports, for shapes alone'
    """
    subprocess.run([sys.executable, "-c", code], check=True, timeout=240, env={**os.environ, "PYTHONPATH": str(ROOT)})


def test_the_readme_s_lines_of_python_run(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With a smaller world than the recipe's."""
    block = next(b for b in re.findall(r"```python\n(.+?)```", README, re.DOTALL) if "import elastic_core" in b)
    small = recipes.toy().override("train.epochs=2", "data.planted.users=60", "data.planted.items=40")
    monkeypatch.setitem(recipes.RECIPES, "toy", lambda model: small)
    monkeypatch.chdir(tmp_path)
    exec(compile(block, "README.md", "exec"), {})
    said = capsys.readouterr().out
    assert "title" in said and "gate" in said and "coverage@10" in said and list(tmp_path.glob("checkpoints/*/ranks.safetensors"))


def test_the_moving_picture_is_what_its_script_draws() -> None:
    pictures = ROOT / "checkpoints" / "pictures"
    drawn = runpy.run_path(str(pictures / "make_search.py"))["draw"]()
    assert (pictures / "search.svg").read_text(encoding="utf-8") == drawn
