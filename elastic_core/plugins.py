"""Models and objectives of your own, from folders outside this package: every file there is imported and registers itself.

    ELASTIC_PLUGINS=~/my-models elastic train --recipe toy --model my_model

Several folders are separated as in PATH. What is imported runs with your rights, like any Python file you start.
"""

import hashlib
import importlib.util
import os
import sys
import warnings
from pathlib import Path

VARIABLE = "ELASTIC_PLUGINS"


failed: list[str] = []  # one sentence for each file that did not work


_begun: set[str] = set()  # values of the variable


def load_plugins() -> None:
    """Imports every .py file of the folders that ELASTIC_PLUGINS names, once. One that fails is warned of; the others work."""
    named = os.environ.get(VARIABLE, "")
    if named in _begun:
        return
    _begun.add(named)
    for folder in filter(None, named.split(os.pathsep)):
        path = Path(folder).expanduser()
        if not path.is_dir():
            failed.append(f"{VARIABLE} names {folder}, which is no folder")
        for file in sorted(path.glob("*.py")) if path.is_dir() else []:
            try:
                _load_plugin(file.resolve())
            except Exception as error:  # a stranger's file: whatever it raises must not take the others down
                failed.append(f"{file} is left out: {type(error).__name__}: {' '.join(str(error).split())[:300]}")
    for sentence in failed:
        warnings.warn(sentence, stacklevel=2)


def _load_plugin(file: Path) -> None:
    name = f"elastic_plugins_{hashlib.sha256(str(file.parent).encode()).hexdigest()[:8]}.{file.stem}"
    if name in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
