"""Hash the code that a run executes, so that edited code never gets outdated scores.

Within prslib, a hash covers a module and the modules that it imports. It ignores
docstrings, comments and the words of errors.
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
from typing import Any

from prslib.checks import expected

PACKAGE = Path(__file__).resolve().parent
REGISTRIES = {"METHODS", "LOSSES"}  # a run chooses an entry of each
LIBRARIES = {*sys.stdlib_module_names, "numpy", "torch"} - {"__main__"}
DOCUMENTED = ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef


def describe(node: object, has_words: bool = True) -> str:
    """Return a syntax tree as text, which is the same on every version of Python.

    Docstrings are left out, and so are texts in a block that ends in an error.
    """
    if isinstance(node, list):
        return f"[{','.join([describe(item, has_words) for item in node])}]"
    if not isinstance(node, ast.AST):
        return repr(node)
    has_words = has_words and not isinstance(node, ast.Raise)
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    if not has_words and (is_text or isinstance(node, ast.JoinedStr)):
        return ""
    fields = []
    for name in node._fields:
        value = getattr(node, name, None)
        if value is None or value == []:
            continue
        is_block = name == "body" and isinstance(value, list)
        if is_block and isinstance(node, DOCUMENTED):
            value = value[ast.get_docstring(node, False) is not None :]
            is_block = False
        keeps_words = has_words and not (is_block and isinstance(value[-1], ast.Raise))
        fields.append(f"{name}={describe(value, keeps_words)}")
    return f"{type(node).__name__}({','.join(fields)})"


def digest_tree(tree: object) -> str:
    """Hash the executed parts of a syntax tree."""
    return hashlib.sha256(describe(tree).encode()).hexdigest()


def hash_source(source: str) -> str:
    """Hash the executed parts of Python source code."""
    return digest_tree(ast.parse(source))


@lru_cache(None)
def file_of(module: str) -> Path | None:
    """Return the file of a module of prslib, or None for any other module."""
    package, *names = module.split(".")
    path = PACKAGE.joinpath(*names)
    if package != "prslib":
        return None
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return file if file.is_file() else None


def stamp_package() -> str:
    """Return a text that changes when a file of the package changes."""
    files = sorted(PACKAGE.rglob("*.py"))
    return repr([file.stat().st_mtime_ns for file in files])


@lru_cache
def read_module(module: str, _stamp: str) -> tuple[str, list[str]]:
    """Return the hash of a module of prslib, and the names that it may import."""
    file = file_of(module)
    assert file is not None
    tree = ast.parse(file.read_text(encoding="utf-8"))
    imports = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            imports.append(node.module)
            imports += [f"{node.module}.{alias.name}" for alias in node.names]
    code = [node for node in tree.body if not REGISTRIES & assigned_names(node)]
    return digest_tree(code), imports


def assigned_names(node: ast.stmt) -> set[str]:
    """Return the names to which a statement assigns."""
    targets = getattr(node, "targets", [getattr(node, "target", None)])
    return {getattr(target, "id", "") for target in targets}


def hash_modules(modules: Iterable[str], stamp: str) -> str:
    """Compute one hash of prslib's modules and their imports in prslib.

    Registries, which list what a run chooses by name, are left out: `REGISTRIES` and the
    ``__init__.py`` of a package. The key of the run covers the chosen entries.
    """
    waiting = list(modules)
    digests: dict[str, str] = {}
    while waiting:
        module = waiting.pop()
        file = file_of(module)
        if file is None or file.name == "__init__.py" or module in digests:
            continue
        digests[module], imports = read_module(module, stamp)
        waiting += imports
    return hashlib.sha256(repr(sorted(digests.items())).encode()).hexdigest()


def list_parts(thing: Any) -> list[Any]:
    """Return a function, or a class and the classes that it extends."""
    thing = thing.func if isinstance(thing, partial) else thing
    return list(getattr(thing, "__mro__", [inspect.unwrap(thing)]))


def list_modules(thing: Any) -> list[str]:
    """Return the modules of prslib that define a thing or classes that it extends."""
    modules = [part.__module__ for part in list_parts(thing)]
    return [module for module in modules if file_of(module)]


def refuse_attributes(thing: Any) -> None:
    """Refuse a callable object with attributes, or its method: no source shows them."""
    owner = thing.__self__ if inspect.ismethod(thing) else thing
    is_source = isinstance(owner, type) or inspect.isroutine(owner)
    if callable(thing) and not is_source and getattr(owner, "__dict__", None):
        what = "a function or class (a run's key does not cover attributes of objects)"
        raise TypeError(expected(what, thing))


def hash_user_code(thing: Any) -> str:
    """Hash the files or notebook cells that define a user's function or class.

    The hash also covers the user's classes that a class extends, default values, closures
    and the arguments of a partial. It does not cover helpers in other files.
    """
    given = []
    if isinstance(thing, partial):
        given = [thing.args, sorted(thing.keywords.items())]
    rows = []
    for part in list_parts(thing):
        refuse_attributes(part)
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
    """Hash a value given to a function: a function, array, tensor, number or text."""
    if isinstance(value, dict):
        value = list(value.items())
    if isinstance(value, tuple | list):
        return repr([hash_value(part) for part in value])
    if isinstance(value, type | FunctionType | partial):
        names = [part.__qualname__ for part in list_parts(value)]
        return repr((names, list_modules(value), hash_user_code(value)))
    refuse_attributes(value)
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
    raise ValueError(f"{name} has no source; define it in a file")
