"""Hash the code that a run executes, so that edited code never gets old scores back.

Within prslib a hash follows names: a function, what it calls, and what these call. It
does not see docstrings, comments and the words of errors.
"""

import ast
import hashlib
import inspect
import linecache
import sys
from collections.abc import Iterable
from functools import lru_cache, partial
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

PACKAGE = Path(__file__).resolve().parent
# a run names its entry in each of these, and the bytes of its data set
TABLES = {"SAMPLERS", "LOSSES", "MODELS", "METHODS", "DATASETS"}
DATA = {"load_dataset", "fingerprint"}
LIBRARIES = {*sys.stdlib_module_names, "numpy", "torch"} - {"__main__"}
DOCUMENTED = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef


class Module(NamedTuple):
    """What a module of prslib defines, and what its imports name."""

    names: dict[str, list[str]]  # in each definition
    digests: dict[str, str]  # of each definition, as it is executed
    imports: dict[str, tuple[str, str]]  # module and name


def describe(node: object, has_words: bool = True) -> object:
    """Return a syntax tree as nested lists, the same on every version of Python.

    Docstrings are left out, and so are texts in a block that ends in an error.
    """
    if isinstance(node, list):
        return [describe(item, has_words) for item in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    has_words = has_words and not isinstance(node, ast.Raise)
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    if not has_words and (is_text or isinstance(node, ast.JoinedStr)):
        return ""
    fields = []
    for name, value in ast.iter_fields(node):
        if value is None or value == []:
            continue
        is_block = name == "body" and isinstance(value, list)
        if is_block and isinstance(node, DOCUMENTED):
            value = value[ast.get_docstring(node, False) is not None :]
            is_block = False
        keeps_words = has_words and not (is_block and isinstance(value[-1], ast.Raise))
        fields.append((name, describe(value, keeps_words)))
    return [type(node).__name__, fields]


def digest_tree(tree: object) -> str:
    """Hash a syntax tree as it is executed."""
    return hashlib.sha256(repr(describe(tree)).encode()).hexdigest()


def hash_source(source: str) -> str:
    """Hash a text of Python as it is executed."""
    return digest_tree(ast.parse(source))


@lru_cache(None)
def file_of(module: str) -> Path | None:
    """Return the file of a module of prslib; None of another one."""
    package, *names = module.split(".")
    path = PACKAGE.joinpath(*names)
    if package != "prslib":
        return None
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return file if file.is_file() else None


def stamp_package() -> str:
    """Return what changes when a file of the package does."""
    files = sorted(PACKAGE.rglob("*.py"))
    return repr([file.stat().st_mtime_ns for file in files])


@lru_cache(1)
def hash_package(_stamp: str) -> str:
    """Hash all code of the package."""
    files = sorted(PACKAGE.rglob("*.py"))
    rows = [hash_source(file.read_text(encoding="utf-8")) for file in files]
    return hashlib.sha256(repr(rows).encode()).hexdigest()


@lru_cache
def read_module(module: str, _stamp: str) -> Module:
    """Read the definitions and the imports of a module of prslib."""
    file = file_of(module)
    assert file is not None
    tree = ast.parse(file.read_text(encoding="utf-8"))
    nodes: dict[str, list[ast.stmt]] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names = {node.name}
        else:  # an assignment, or one in place
            targets = getattr(node, "targets", [getattr(node, "target", ast.Pass())])
            names = {name for target in targets for name in list_ids(target)}
        for name in names:
            nodes.setdefault(name, []).append(node)
    imports = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                imports[alias.asname or alias.name] = node.module, alias.name
    return Module(
        {name: sorted(set().union(*map(list_ids, nodes[name]))) for name in nodes},
        {name: digest_tree(nodes[name]) for name in nodes},
        imports,
    )


def list_ids(tree: ast.AST) -> list[str]:
    """Return the names in a syntax tree."""
    return [node.id for node in ast.walk(tree) if isinstance(node, ast.Name)]


def follow(module: str, name: str, found: set[tuple[str, str]], stamp: str) -> None:
    """Add a definition and all that its names lead to within prslib."""
    if (module, name) in found or name in TABLES | DATA:
        return
    if file_of(f"{module}.{name}"):  # a module as a whole
        module = f"{module}.{name}"
        for each in read_module(module, stamp).names:
            follow(module, each, found, stamp)
        return
    names, _, imports = read_module(module, stamp)
    if name in names:
        found.add((module, name))
        for each in names[name]:
            follow(module, each, found, stamp)
    elif name in imports and file_of(imports[name][0]):
        follow(*imports[name], found, stamp)


def hash_names(names: Iterable[tuple[str, str]], stamp: str) -> str:
    """Hash definitions of prslib, each a module and a name, and all that they use."""
    found: set[tuple[str, str]] = set()
    for module, name in names:
        follow(module, name, found, stamp)
    rows = [
        (module, name, read_module(module, stamp).digests[name])
        for module, name in sorted(found)
    ]
    return hashlib.sha256(repr(rows).encode()).hexdigest()


def list_parts(thing: Any) -> list[Any]:
    """Return a function, or a class and the classes that it extends."""
    thing = thing.func if isinstance(thing, partial) else thing
    return list(getattr(thing, "__mro__", [inspect.unwrap(thing)]))


def list_names(thing: Any) -> list[tuple[str, str]]:
    """Return the modules and names of those parts of a thing that are prslib's."""
    parts = [part for part in list_parts(thing) if file_of(part.__module__)]
    return [(part.__module__, part.__qualname__) for part in parts]


def hash_user_code(thing: Any) -> str:
    """Hash the files or notebook cells that define what is not prslib's.

    They are those of a function, or of a class and the classes that it extends, with
    what they were given: default values, closures and the arguments of a partial.
    Helpers in other files are not seen.
    """
    given = []
    if isinstance(thing, partial):
        given = [thing.args, sorted(thing.keywords.items())]
    rows = []
    for part in list_parts(thing):
        module = part.__module__ or ""
        if file_of(module) or module.partition(".")[0] in LIBRARIES:
            continue
        functions = [part]
        if isinstance(part, type):
            functions = [inspect.unwrap(value) for value in vars(part).values()]
        functions = [each for each in functions if isinstance(each, FunctionType)]
        for function in functions:
            given += [function.__defaults__, function.__kwdefaults__]
            given += [cell.cell_contents for cell in function.__closure__ or ()]
        rows.append(hash_source(source_of(part, functions)))
    parts = {id(part) for part in list_parts(thing)}  # a function may call itself
    rows += [hash_value(value) for value in given if id(value) not in parts]
    return hashlib.sha256(repr(rows).encode()).hexdigest()


def hash_value(value: Any) -> str:
    """Hash what a function was given: functions, arrays, tensors, numbers, text."""
    if isinstance(value, dict):
        value = list(value.items())
    if isinstance(value, tuple | list):
        return repr([hash_value(part) for part in value])
    if isinstance(value, type | FunctionType | partial):
        return repr((list_names(value), hash_user_code(value)))
    array = value.numpy(force=True) if hasattr(value, "numpy") else value
    if hasattr(array, "tobytes"):  # its text leaves out the middle
        digest = hashlib.sha256(array.tobytes()).hexdigest()
        return repr((str(array.dtype), array.shape, digest))
    return repr(value)


def source_of(thing: Any, functions: list[FunctionType]) -> str:
    """Return the text of the file, or the cell of a notebook, that defines a thing."""
    files = [function.__code__.co_filename for function in functions]
    module = sys.modules.get(thing.__module__)
    for file in files or [getattr(module, "__file__", None) or ""]:
        linecache.checkcache(file)
        if lines := linecache.getlines(file):
            return "".join(lines)
    name = thing.__qualname__
    raise ValueError(f"{name} has no source; define it in a file or a notebook")
