"""One file outside the package is a model, another an objective: trained, tested, timed and offered by being there."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from elastic_core import plugins

ROOT = Path(__file__).resolve().parents[1]

MODEL = '''"""The mean of what somebody has met so far: a model in 25 lines."""
from dataclasses import dataclass
import torch
from elastic_core.core.config import ModelConfig
from elastic_core.core.layers import EventEmbedding
from elastic_core.models import Encoded, Recommender, Scorer, register

@dataclass(frozen=True, kw_only=True)
class SoFarConfig(ModelConfig, name="so-far"):
    pass

@register(SoFarConfig)
class SoFar(Recommender):
    objective, causal = "all", True
    def __init__(self, config, catalog):
        super().__init__(config, catalog)
        self.events = EventEmbedding(self.n_items, config.length, config.width, config.dropout)
        self.mix = torch.nn.Linear(config.width, config.width)
    def forward(self, batch):
        x, n = self.events(batch.items).cumsum(1), batch.real.cumsum(1).clamp(min=1)
        return Encoded(self.mix(x / n.unsqueeze(-1)))
    def last_state(self, batch):
        return self.forward(batch).states[:, -1]
    def scorer(self):
        return Scorer(self.events.items.weight)
'''
OBJECTIVE = '''"""The newest train event of everybody, and nothing else."""
from dataclasses import dataclass
import numpy as np
from elastic_core.core.config import ObjectiveConfig
from elastic_core.objectives import EpochRows, Objective, register

@dataclass(frozen=True, kw_only=True)
class NewestConfig(ObjectiveConfig, name="newest"):
    pass

@register(NewestConfig)
class Newest(Objective):
    @classmethod
    def refusal_reason(cls, model):
        return "it is asked with a mask" if model.masks else ""
    def epoch_rows(self, rng):
        users = np.flatnonzero(self.ends - self.starts > 1)
        return EpochRows(users, self.ends[users] - 1, np.ones(len(users), np.int64))
'''
USE = """
import sys, warnings
from pathlib import Path
warnings.simplefilter("ignore")
from elastic_core import models, objectives, plugins, recipes
from elastic_core.bench import latency
from elastic_core.data import load
from elastic_core.core import sasrec
from elastic_core.services.train import presets
from elastic_core.runs.training import train
import torch
small = ["data.planted.users=60", "data.planted.items=40", "train.epochs=2", "objective.name=newest"]
config = recipes.toy("so-far").override(*small)
run = train(config, load(config.data), Path(sys.argv[1]))
assert run.finished and run.report().metrics["full"]["HR@10"] > 0, run.events()
assert "newest" in objectives.honest_objectives(models.build(config.model, 9))
assert "so-far" in latency.all_systems() and "sasrec-two sasrec-fused" in latency.all_systems()
rows = latency.measure_latency(latency.Setting(length=16, width=8, batch=4), torch.device("cpu"), ("so-far",), seconds=0.01)
assert set(rows["system"]) == {"so-far"} and (rows["processor"] > 0).all()
assert {"so-far", "sasrec-two"} <= {v.model for v in presets.list_variants()}
assert models.model_class("sasrec") is sasrec.SASRec and models.model_class("sasrec-two") is not sasrec.SASRec
usual = presets.make_config(load(config.data), presets.find_variant("SASRec"), presets.BUDGETS[0])
assert type(models.build(usual.model, 9)) is sasrec.SASRec
print(*plugins.failed, sep="\\n")
words = ["tests/test_contracts.py", "-q", "-p", "no:cacheprovider", "-n0", "-k"]
words += ["so-far or newest and (sasrec or train_events or every_target)"]
sys.exit(__import__("pytest").main(words))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "plugins").mkdir()
    original = (ROOT / "elastic_core/core/sasrec.py").read_text(encoding="utf-8")
    files = {
        "so_far": MODEL,
        "newest": OBJECTIVE,
        "sasrec_two": original.replace('name="sasrec"', 'name="sasrec-two"'),
        "copy_without_a_new_name": original,
        "broken": "import nothing_of_that_name\n",
    }  # fmt: skip
    for name, text in files.items():
        (tmp_path / "plugins" / f"{name}.py").write_text(text, encoding="utf-8")
    return tmp_path / "plugins"


@pytest.mark.slow
def test_a_file_of_ones_own_is_trained_timed_offered_and_held_to_the_contract(folder: Path, tmp_path: Path) -> None:
    """A copy under a new name stands beside the original; one that keeps the name, or is broken, is left out in a sentence."""
    words, environment = [sys.executable, "-c", USE, str(tmp_path / "run")], os.environ | {plugins.VARIABLE: str(folder)}
    done = subprocess.run(words, capture_output=True, text=True, cwd=ROOT, env=environment, timeout=250)
    assert done.returncode == 0, done.stderr + done.stdout[-3000:]
    broken, taken = done.stdout.splitlines()[:2]
    assert "broken.py is left out" in broken and "nothing_of_that_name" in broken
    assert "copy_without_a_new_name.py is left out" in taken and "the name 'sasrec' is taken" in taken
    assert done.stdout.count("is left out") == 2
    assert int(done.stdout.split(" passed")[0].split()[-1]) > 25
