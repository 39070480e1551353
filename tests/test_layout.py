"""The shape of the code: imports point one way, the core stays light, and what the README shows can be run."""

import ast
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

from elastic_core.commands.application import check_words
from elastic_core.commands.command_list import COMMANDS, help_text
from pages.layout.screens import SCREENS, Screen

ROOT = Path(__file__).resolve().parents[1]
CORE = ROOT / "elastic_core"

# A module may import from lower floors and from its own.
FLOORS = (
    ("errors", "files", "plugins", "text"),
    ("core",),
    ("machine", "run_config"),
    ("data", "models", "objectives", "peers", "scale", "slots"),
    ("convert", "exported", "memory", "recipes", "recommendations", "runs"),
    ("bench", "results", "training_time"),
    ("serving", "study"),
    ("services",),
    ("jobs",),
    ("commands", "__main__"),
)
FLOOR = {name: floor for floor, names in enumerate(FLOORS) for name in names}
LIGHT = {"torch", "filelock", "numpy", "pandas", "safetensors", "elastic_core"}  # filelock comes with torch
# Heavy packages and the one module that may import them, when it needs them.
OWNERS = {
    "sklearn": r"memory/(routing_metrics|recovery|item_clusters)\.py|peers/(due_again|parts/codebooks)\.py|services/map/.*\.py",
    "scipy": r"(data/interest_count|memory/routing(_metrics)?|results/statistics"
    r"|services/(person/influence|experts/items|speed/curves))\.py",
    "umap": r"services/map/.*\.py",
    "numba": r"services/map/.*\.py",
    "pyarrow": r"(data/(reading/\w+|frames)|recommendations|results/store)\.py",
    "openpyxl": r"data/reading/spreadsheets\.py",
    "charset_normalizer": r"data/reading/delimited_text\.py",
    "tqdm": r"(commands/recommend|runs/progress)\.py",
    "segno": r"services/tour/invitation\.py",
    "fastapi": r"serving/app\.py",
    "starlette": r"serving/app\.py",
    "pydantic": r"serving/app\.py",
    "onnxruntime": r"exported\.py",
    "onnxscript": r"exported\.py",
    "jinja2": r"study/page\.py",
    "plotly": r"study/page\.py",
    "typer": r"commands/\w+\.py",
    "uvicorn": r"commands/serve\.py",
}


def imports(path: Path) -> Iterator[str]:
    """Full names of everything a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            yield node.module or ""
            if node.module == "elastic_core":
                yield from (f"elastic_core.{alias.name}" for alias in node.names)


def part(path: Path) -> str:
    """`elastic_core/core/histories.py` → data."""
    return path.relative_to(CORE).parts[0].removesuffix(".py")


CORE_FILES = [path for path in sorted(CORE.rglob("*.py")) if part(path) != "__init__"]


def test_every_module_has_its_floor() -> None:
    assert {part(path) for path in CORE_FILES} <= set(FLOOR), "a new module must take its place in FLOORS"


def test_imports_point_down_and_the_core_stays_light() -> None:
    known = LIGHT | {"__future__", *sys.stdlib_module_names}
    for path in CORE_FILES:
        for name in imports(path):
            top, said = name.split(".")[0], f"{path.relative_to(ROOT)} imports {name}"
            if top == "elastic_core" and "." in name:
                assert FLOOR[name.split(".")[1]] <= FLOOR[part(path)], f"{said}, which lies above it"
            elif top in OWNERS:
                assert re.fullmatch(OWNERS[top], str(path.relative_to(CORE))), f"{said}, which belongs to {OWNERS[top]} alone"
            else:
                assert top in known, f"{said}, which the core must run without"


# --- circles -----------------------------------------------------------------------------------------------------------

Graph = dict[str, set[str]]
FILES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for folder in ("elastic_core", "pages")
    for path in sorted((ROOT / folder).rglob("*.py"))
}


def runtime_imports(tree: ast.AST) -> Iterator[str]:
    """Everything that running a file may import, also inside functions; without what only type checkers read."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        yield from runtime_imports(node)


def import_graph() -> Graph:
    """Which files import which others."""
    graph: Graph = {}
    for name, path in FILES.items():
        imported = runtime_imports(ast.parse(path.read_text(encoding="utf-8")))
        owners = {target if target in FILES else target.rpartition(".")[0] for target in imported}
        graph[name] = owners & set(FILES) - {name}
    return graph


def room(name: str) -> str:
    """The folder of a file, or the file itself where it lies directly in the package."""
    path = FILES[name]
    if path.name != "__init__.py" and path.parent.parent == ROOT:
        return name
    return ".".join(path.parent.relative_to(ROOT).parts)


def circles(graph: Graph) -> list[set[str]]:
    """Groups of nodes of which each can be reached from each other one."""
    names = sorted(graph)
    numbers = {name: number for number, name in enumerate(names)}
    rows, columns = zip(*((numbers[a], numbers[b]) for a in names for b in graph[a]), strict=True)
    arrows = csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(names), len(names)))
    _, groups = connected_components(arrows, connection="strong")
    members = [{names[i] for i in np.flatnonzero(groups == group)} for group in np.unique(groups)]
    return [names for names in members if len(names) > 1]


def test_imports_go_in_no_circle_between_files_or_folders() -> None:
    files = import_graph()
    folders: Graph = {room(name): set() for name in files}
    for name, imported in files.items():
        folders[room(name)] |= {room(other) for other in imported} - {room(name)}
    assert not circles(files)
    assert not circles(folders)


PAGES = sorted((ROOT / "pages").rglob("*.py"))


def test_pages_ask_services_and_do_no_arithmetic() -> None:
    away = re.compile(r"(torch|app)\b|elastic_core\.(scale|commands|bench)")  # tensors are left to the services
    for path in PAGES:
        names = set(imports(path))
        assert not (found := {name for name in names if away.match(name)}), (path, found)
        if path.stem.endswith(("charts", "plot", "item_cards")):
            assert "streamlit" not in names, f"{path}: charts are pure: tables in, figures out"


def test_rooms_of_pages_point_one_way() -> None:
    """What a screen is made of lies in its folder. Screens and the tour stand on `layout` and `components`, `layout` on
    `components`, and `components` on nothing of the app."""
    for path in PAGES:
        room = path.parent.name
        if path.parent == ROOT / "pages":
            continue
        allowed = {"components": {"components"}, "layout": {"components", "layout"}}.get(room, {"components", "layout", room})
        others = {name.split(".")[1] for name in imports(path) if name.startswith("pages.")} - allowed
        assert not others, f"{path.relative_to(ROOT)} imports of pages/{', '.join(others)}"
    rooms = {path.parent.name for path in PAGES if path.parent != ROOT / "pages"}
    assert {path.parent.name for path in PAGES if path.name == "page.py"} == rooms - {"components", "layout", "tour"}


# Beside a model's own file: the program of the same name, configurations, result rows, tables, and the pages that quote them.
TOLD = r"services/(keys/gate|tour/measured_answers|speed/\w+|evidence/speed)"
NAMING = rf"elastic_core/((core|peers|slots)/.*|commands/application|convert|recipes|results/\w+|{TOLD})\.py"
NAMING_PAGES = r"pages/speed/(calculator|charts|reading)\.py"


def test_no_code_asks_a_model_for_its_name() -> None:
    names = re.compile("|".join(rf'"{name}(-[a-z-]+)?"' for name in ("elastic", "sasrec", "bert4rec", "cooccurrence")))
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in [*CORE_FILES, *PAGES]
        if not re.fullmatch(f"{NAMING}|{NAMING_PAGES}", str(path.relative_to(ROOT)))
        for match in names.finditer(re.sub(r'""".*?"""', "", path.read_text(encoding="utf-8"), flags=re.DOTALL))
    ]
    assert not found


def test_every_test_that_the_app_names_is_there() -> None:
    words = sorted((ROOT / "pages").glob("*/text.md"))
    text = "".join(path.read_text(encoding="utf-8") for path in [*CORE_FILES, *PAGES, *words])
    named = set(re.findall(r"(tests/[a-z_/]+\.py)(?:::([a-z_0-9]+))?", text))
    assert len(named) > 30
    for file, name in named:
        source = (ROOT / file).read_text(encoding="utf-8")
        assert not name or re.search(rf"^def {name}\(", source, re.MULTILINE), f"{file} has no {name}"


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.folder)
def test_the_readme_has_a_row_for_every_screen(screen: Screen) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"| **{screen.title}** |" in text, f"README.md, What you see: a row `| **{screen.title}** | its question |` is missing"


def test_only_the_frame_lies_directly_in_pages() -> None:
    """Streamlit's old discovery looks into `pages/` beside the script it runs; the frame has none beside it."""
    assert [path.name for path in (ROOT / "pages").glob("*.py")] == ["navigation.py"]
    assert not (ROOT / "pages" / "pages").exists()


def test_the_app_listens_here_only_asks_nothing_and_tells_nobody() -> None:
    settings = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    server = settings["server"]
    assert server["address"] == "127.0.0.1" and server["enableXsrfProtection"]
    assert settings["browser"]["gatherUsageStats"] is False
    assert server["showEmailPrompt"] is False, "on a desktop, the very first start would wait in the terminal for an address"


def readme_commands() -> list[str]:
    """The commands in every document: README, RESULTS and those of the rooms."""
    places = ("README.md", "checkpoints/*.md", "elastic_core/**/*.md", "pages/**/*.md")
    documents = [path for place in places for path in ROOT.glob(place)]
    lines = [line.strip() for path in documents for line in path.read_text(encoding="utf-8").splitlines()]
    return [line for line in lines if re.match(r"elastic \S|torchrun .* -m elastic_core\b", line)]


def test_every_command_that_a_document_shows_can_be_parsed() -> None:
    shown = readme_commands()
    assert len(shown) > 15, "README and the documents of the rooms show how to train, evaluate and reproduce"
    for line in shown:
        check_words(shlex.split(re.sub(r"^torchrun .* -m elastic_core", "elastic", line), comments=True)[1:])


@pytest.mark.parametrize("command", COMMANDS)
def test_every_example_in_the_help_can_be_parsed(command: str) -> None:
    text = import_module(f"elastic_core.commands.{command.replace('-', '_')}").__doc__ or ""
    examples = re.findall(r"^  elastic (.+?)(?: {3,}.*)?$", text, re.MULTILINE)
    assert examples
    for example in examples:
        words = shlex.split(example)
        assert words[0] == command
        check_words(words)


def test_all_commands_fit_one_screen() -> None:
    lines = help_text().splitlines()
    assert len(lines) <= 40 and max(map(len, lines)) <= 90
    assert [line.split()[0] for line in lines if line.startswith("  ")] == list(COMMANDS)
