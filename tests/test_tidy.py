"""The numbers and bans of the house, held by a machine.

The numbers may only fall; a rise needs a decision record. Ruff and basedpyright hold what they can say themselves; here
stands what they cannot. Each check is itself tried on a piece of bad code, so that it cannot pass by seeing nothing.
"""

import ast
import io
import os
import re
import tokenize
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache, cached_property
from pathlib import Path, PurePosixPath
from typing import Final, TypeAlias

import pytest

FUNCTION_LINES_MAX: Final = 70
CLASS_LINES_MAX: Final = 300
MODULE_LINES_MAX: Final = 500
TEST_MODULE_LINES_MAX: Final = 800
PROTOCOL_METHODS_MAX: Final = 12
PARAMETERS_MAX: Final = 6
POSITIONAL_PARAMETERS_MAX: Final = 4

BANNED_MODULES: Final = ("utils", "helpers", "common", "misc", "base", "types", "models", "manager", "*_v[0-9]*")
LATE_IMPORTS: Final = ("src/coterie/bootstrap/*", "src/coterie/__main__.py")
CATCH_ALLS: Final = (
    "src/coterie/runtime/supervisor.py",
    "src/coterie/runtime/effects.py",
    "src/coterie/storage/sqlite/*",
    "src/coterie/interfaces/http/*",
    "src/coterie/bootstrap/*",
    "src/coterie/model_server/*",
)

ROOT: Final = Path(__file__).parents[1]
CODE_FOLDERS: Final = ("src", "tests", "benchmarks", "examples", "docs")
# Put together from pieces, so that this file does not hold what it looks for.
FOREIGN: Final = {
    rf"(?<![\w.-])/(?:ro{''}ot|home/[a-z]\w*|Us{''}ers/\w+)/": "an absolute path of one machine",
}
SKIPPED_FOLDERS: Final = (
    ".git",
    ".venv",
    "venv",
    "node_modules",
    "__pycache__",
    "*.egg-info",
    ".*_cache",
    ".hypothesis",
)
BUILT_FOLDERS: Final = ("dist", "build")


@dataclass(frozen=True)
class Source:
    """One text file of the project."""

    path: str
    """Relative to the root, with forward slashes."""
    text: str

    @cached_property
    def lines(self) -> list[str]:
        """The lines, without their ends."""
        return self.text.splitlines()

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of the syntax tree; none for what is not Python."""
        return list(ast.walk(ast.parse(self.text, self.path))) if self.path.endswith(".py") else []

    @cached_property
    def comments(self) -> list[tuple[int, str]]:
        """Line and text of each comment; text inside a string is none."""
        if not self.path.endswith(".py"):
            return []
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return [(token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT]


@dataclass(frozen=True)
class Finding:
    """One place that is not as it should be."""

    source: Source
    line: int
    remedy: str

    def __str__(self) -> str:
        """As a compiler would print it."""
        return f"{self.source.path}:{self.line}: {self.remedy}"


Check: TypeAlias = Callable[[Source], Iterator[Finding]]
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def _functions(source: Source) -> Iterator[Function]:
    return (node for node in source.nodes if isinstance(node, Function))


def _classes(source: Source) -> Iterator[ast.ClassDef]:
    return (node for node in source.nodes if isinstance(node, ast.ClassDef))


def _extent(node: Function | ast.ClassDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def short_functions(source: Source) -> Iterator[Finding]:
    """Functions are at most `FUNCTION_LINES_MAX` lines."""
    for node in _functions(source):
        if _extent(node) > FUNCTION_LINES_MAX:
            remedy = f"{node.name} has {_extent(node)} lines, {FUNCTION_LINES_MAX} may be: take a step out, with a name"
            yield Finding(source, node.lineno, remedy)


def short_classes(source: Source) -> Iterator[Finding]:
    """Classes are at most `CLASS_LINES_MAX` lines."""
    for node in _classes(source):
        if _extent(node) > CLASS_LINES_MAX:
            remedy = f"{node.name} has {_extent(node)} lines, {CLASS_LINES_MAX} may be: split it by what it knows"
            yield Finding(source, node.lineno, remedy)


def short_modules(source: Source) -> Iterator[Finding]:
    """Modules are at most `MODULE_LINES_MAX` lines, test modules `TEST_MODULE_LINES_MAX`."""
    if not source.path.endswith(".py"):
        return
    lines_max = TEST_MODULE_LINES_MAX if source.path.startswith("tests/") else MODULE_LINES_MAX
    if len(source.lines) > lines_max:
        remedy = (
            f"the module has {len(source.lines)} lines, {lines_max} may be: give one of its nouns a home of its own"
        )
        yield Finding(source, lines_max + 1, remedy)


def narrow_protocols(source: Source) -> Iterator[Finding]:
    """Protocols have at most `PROTOCOL_METHODS_MAX` methods."""
    for node in _classes(source):
        bases = (ast.unparse(base).split("[")[0].split(".")[-1] for base in node.bases)
        methods = sum(isinstance(member, Function) for member in node.body)
        if "Protocol" in bases and methods > PROTOCOL_METHODS_MAX:
            remedy = f"{node.name} has {methods} methods, {PROTOCOL_METHODS_MAX} may be: one Protocol per noun"
            yield Finding(source, node.lineno, remedy)


def few_parameters(source: Source) -> Iterator[Finding]:
    """At most `PARAMETERS_MAX` parameters, of which `POSITIONAL_PARAMETERS_MAX` may be given by position."""
    for node in _functions(source):
        positional = [parameter.arg for parameter in (*node.args.posonlyargs, *node.args.args)]
        if positional[:1] in (["self"], ["cls"], ["mcs"]):
            positional = positional[1:]
        count = len(positional) + len(node.args.kwonlyargs)
        if count > PARAMETERS_MAX:
            remedy = f"{node.name} takes {count} parameters, {PARAMETERS_MAX} may be: what travels together is a value"
            yield Finding(source, node.lineno, remedy)
        if len(positional) > POSITIONAL_PARAMETERS_MAX:
            last = positional[POSITIONAL_PARAMETERS_MAX - 1]
            yield Finding(source, node.lineno, f"{node.name}: put `*` after {last}, so that callers name the rest")


def imports_on_top(source: Source) -> Iterator[Finding]:
    """Functions import nothing, but where a host is composed."""
    if _allowed(source.path, LATE_IMPORTS):
        return
    for function in _functions(source):
        for node in ast.walk(function):
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield Finding(source, node.lineno, f"move the import out of {function.name} to the top of the module")


def faults_are_named(source: Source) -> Iterator[Finding]:
    """`except Exception` stands only at the edges that must survive anything."""
    if not source.path.startswith("src/") or _allowed(source.path, CATCH_ALLS):
        return
    for node in source.nodes:
        if isinstance(node, ast.ExceptHandler) and _catches_all(node) and not _raises_again(node):
            yield Finding(source, node.lineno, "name the faults that are expected here and let the others pass")


def _catches_all(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(name, ast.Name) and name.id in ("Exception", "BaseException") for name in caught)


def _raises_again(handler: ast.ExceptHandler) -> bool:
    last = handler.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def modules_named_by_a_noun(source: Source) -> Iterator[Finding]:
    """No module or folder has a name that says nothing, or a version."""
    path = PurePosixPath(source.path)
    if path.suffix != ".py":
        return
    for name in (*path.parts[:-1], path.stem):
        if _allowed(name, BANNED_MODULES):
            yield Finding(source, 1, f"{name!r} says nothing: put the thing where its noun lives")


def packages_say_what_they_are(source: Source) -> Iterator[Finding]:
    """Every package opens with a docstring."""
    is_package = source.path.startswith("src/") and source.path.endswith("/__init__.py")
    if is_package and ast.get_docstring(ast.parse(source.text)) is None:
        yield Finding(source, 1, "say in a docstring what the package is, and what it is deliberately not")


_IGNORE: Final = re.compile(r"#\s*(?:type|pyright):\s*ignore(?P<rule>\[[\w, -]+\])?(?P<reason>.*)")
_FILE_WIDE: Final = re.compile(r"#\s*pyright:\s*(?!ignore)(?P<reason>)")


def ignores_have_rule_and_reason(source: Source) -> Iterator[Finding]:
    """A silenced type error names its rule, and why it is no error: behind it, or in a comment on the line above."""
    comments = dict(source.comments)
    for line, comment in comments.items():
        match = _IGNORE.search(comment) or _FILE_WIDE.search(comment)
        if match is None:
            continue
        above = comments.get(line - 1, "") if source.lines[line - 2].lstrip().startswith("#") else ""
        if match.re is _IGNORE and match["rule"] is None:
            yield Finding(source, line, "name the rule: `# pyright: ignore[reportSomething]`")
        if not (_is_sentence(match["reason"]) or _is_sentence(above)):
            yield Finding(source, line, "give the reason behind the ignore, or in a comment on the line above")


def _is_sentence(text: str) -> bool:
    return len(re.findall(r"\w{2,}", text.split("pyright:", maxsplit=1)[0])) > 1


def nothing_foreign(source: Source) -> Iterator[Finding]:
    """No file names what only one machine has."""
    for number, line in enumerate(source.lines, start=1):
        for pattern, what in FOREIGN.items():
            if re.search(pattern, line):
                yield Finding(source, number, f"this names {what}: say it so that every reader has it")


def _allowed(path: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch(path, pattern) for pattern in patterns)


CHECKS: Final[tuple[Check, ...]] = (
    short_functions,
    short_classes,
    short_modules,
    narrow_protocols,
    few_parameters,
    imports_on_top,
    faults_are_named,
    modules_named_by_a_noun,
    packages_say_what_they_are,
    ignores_have_rule_and_reason,
    nothing_foreign,
)


@cache
def _tree() -> tuple[Source, ...]:
    found: list[Source] = []
    for folder, folders, names in os.walk(ROOT):
        skipped = SKIPPED_FOLDERS + BUILT_FOLDERS * (Path(folder) == ROOT)
        folders[:] = sorted(name for name in folders if not _allowed(name, skipped))
        for name in sorted(names):
            path = Path(folder, name)
            try:
                text = path.read_text("utf-8")
            except (UnicodeDecodeError, OSError):
                continue  # A picture, or a link to nowhere.
            found.append(Source(path.relative_to(ROOT).as_posix(), text))
    return tuple(found)


def _names(check: Check) -> str:
    return check.__name__


@pytest.mark.parametrize("check", CHECKS, ids=_names)
def test_the_tree_is_tidy(check: Check) -> None:
    """One finding a line, so that an editor can jump to it."""
    findings = [str(finding) for source in _tree() for finding in check(source)]
    assert not findings, "\n" + "\n".join(findings)


def test_the_walk_sees_the_project_and_nothing_built() -> None:
    """A check that looks at no file passes always; one that looks at installed code never does."""
    paths = {source.path for source in _tree()}
    assert {"pyproject.toml", "Makefile", "README.md", "src/coterie/__init__.py", "tests/test_tidy.py"} <= paths
    assert {path.split("/")[0] for path in paths if path.endswith(".py")} <= set(CODE_FOLDERS)


def _lines(count: int) -> str:
    return "    x = 1\n" * count


BAD: Final[tuple[tuple[Check, str, str, int], ...]] = (
    (short_functions, "src/a.py", "x = 1\ndef f():\n" + _lines(70), 2),
    (short_functions, "tests/a.py", "class A:\n  async def f():\n" + _lines(70), 2),
    (short_classes, "src/a.py", "class A:\n" + _lines(300), 1),
    (short_modules, "src/a.py", "x = 1\n" * 501, 501),
    (short_modules, "tests/a.py", "x = 1\n" * 801, 801),
    (narrow_protocols, "src/a.py", "class A(Protocol):\n" + "    def f(self): ...\n" * 13, 1),
    (narrow_protocols, "src/a.py", "class A(t.Protocol[T]):\n" + "    async def f(self): ...\n" * 13, 1),
    (few_parameters, "src/a.py", "def f(a, b, c, d, *, e, f, g): ...", 1),
    (few_parameters, "src/a.py", "def f(a, b, c, d, e): ...", 1),
    (few_parameters, "src/a.py", "class A:\n    def f(self, a, b, c, d, e): ...", 2),
    (imports_on_top, "src/coterie/app/a.py", "def f():\n    import os", 2),
    (imports_on_top, "tests/a.py", "class A:\n    def f(self):\n        from a import b", 3),
    (faults_are_named, "src/coterie/app/a.py", "try:\n    f()\nexcept Exception:\n    pass", 3),
    (faults_are_named, "src/coterie/app/a.py", "try:\n    f()\nexcept (ValueError, BaseException):\n    pass", 3),
    (faults_are_named, "src/coterie/runtime/worker.py", "try:\n    f()\nexcept:\n    pass", 3),
    (modules_named_by_a_noun, "src/coterie/utils.py", "", 1),
    (modules_named_by_a_noun, "src/coterie/helpers/text.py", "", 1),
    (modules_named_by_a_noun, "src/coterie/core/chain_v2.py", "", 1),
    (packages_say_what_they_are, "src/coterie/new/__init__.py", "import os", 1),
    (ignores_have_rule_and_reason, "src/a.py", "x = 1  # type: ignore", 1),
    (ignores_have_rule_and_reason, "src/a.py", "x = 1  # pyright: ignore  # the stub is wrong", 1),
    (ignores_have_rule_and_reason, "src/a.py", "\nx = 1  # pyright: ignore[reportAny]", 2),
    (ignores_have_rule_and_reason, "src/a.py", "# pyright: reportAny=false", 1),
    (nothing_foreign, "README.md", f"one\nsee /{'root'}/main/x", 2),
)


@pytest.mark.parametrize(("check", "path", "text", "line"), BAD, ids=lambda value: getattr(value, "__name__", ""))
def test_a_check_finds_what_is_bad(check: Check, path: str, text: str, line: int) -> None:
    """The finding names the place and what to do there."""
    findings = list(check(Source(path, text)))
    assert {finding.line for finding in findings} == {line}
    assert str(findings[0]).startswith(f"{path}:{line}: ")


def test_every_check_has_bad_code_of_its_own() -> None:
    """A check that was never seen to fail proves nothing."""
    assert {check for check, *_ in BAD} == set(CHECKS)


GOOD: Final[tuple[tuple[Check, str, str], ...]] = (
    (short_functions, "src/a.py", "def f():\n" + _lines(69)),
    (short_classes, "src/a.py", "class A:\n" + _lines(299)),
    (short_modules, "src/a.py", "x = 1\n" * 500),
    (short_modules, "tests/a.py", "x = 1\n" * 800),
    (short_modules, "LICENSE", "x\n" * 900),
    (narrow_protocols, "src/a.py", "class A(Protocol):\n" + "    def f(self): ...\n" * 12),
    (narrow_protocols, "src/a.py", "class A(B):\n" + "    def f(self): ...\n" * 13),
    (few_parameters, "src/a.py", "class A:\n    def f(self, a, b, c, d, *, e, f): ..."),
    (imports_on_top, "src/coterie/bootstrap/up.py", "def f():\n    import os"),
    (imports_on_top, "src/coterie/app/a.py", "if TYPE_CHECKING:\n    import os"),
    (faults_are_named, "src/coterie/runtime/effects.py", "try:\n    f()\nexcept Exception:\n    pass"),
    (faults_are_named, "src/coterie/app/a.py", "try:\n    f()\nexcept BaseException:\n    g()\n    raise"),
    (faults_are_named, "src/coterie/app/a.py", "try:\n    f()\nexcept ValueError:\n    pass"),
    (modules_named_by_a_noun, "src/coterie/core/ledger/states.py", ""),
    (packages_say_what_they_are, "src/coterie/new/__init__.py", '"""What it is."""'),
    (ignores_have_rule_and_reason, "src/a.py", "x = 1  # pyright: ignore[reportAny]  # the stub says less"),
    (ignores_have_rule_and_reason, "src/a.py", "# The stub says less.\nx = 1  # pyright: ignore[reportAny]"),
    (ignores_have_rule_and_reason, "src/a.py", 'x = "# type: ignore"'),
    (nothing_foreign, "README.md", "a network/work/rate and ./root/x"),
)


@pytest.mark.parametrize(("check", "path", "text"), GOOD, ids=lambda value: getattr(value, "__name__", ""))
def test_a_check_lets_pass_what_is_good(check: Check, path: str, text: str) -> None:
    """At the bound is within it, and the places that are allowed stay so."""
    assert not list(check(Source(path, text)))
