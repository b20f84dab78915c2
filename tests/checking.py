"""Types and shapes are checked while tests run, in every function and dataclass of a package that is imported then.

Beartype checks what a function is given and what it returns, once; jaxtyping has the axes of one call agree with each
other. The import hook of jaxtyping claims the same and does the double of it: arguments twice, a binding of the
signature for every call, and all that for functions without any shape too.
"""

import ast
import functools
import importlib.util
import inspect
import sys
from collections import ChainMap
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any, get_args, get_type_hints

from beartype import beartype
from jaxtyping import AbstractArray, jaxtyped

ONE_CALL = jaxtyped("context")
FUNCTION, CLASS = "__checked__", "__checked_class__"  # what a module that is checked has in addition


def check(package: str) -> None:
    """Have all modules of the package checked that are imported from now on."""
    loaded = [name for name in sys.modules if f"{name}.".startswith(f"{package}.")]
    assert not loaded, f"{loaded[0]} was imported before it could be checked"
    sys.meta_path.insert(0, Finder(package))


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, whose annotations hold or it raises; axes of one name are equal within a call."""
    if not (told := function.__annotations__):
        return function
    function.__annotations__ = hints = known(told, function.__globals__)
    tested = beartype(function)
    function.__annotations__ = tested.__annotations__ = told
    return in_one_call(tested) if any(map(has_shapes, hints.values())) else tested


def checked_class(kind: type) -> type:
    """A dataclass checks its fields when it is made; methods are functions and see to themselves."""
    made = kind.__dict__.get("__init__")
    if "__dataclass_fields__" in kind.__dict__ and isinstance(made, FunctionType) and not hasattr(made, "__wrapped__"):
        kind.__init__ = checked(made)  # type: ignore[misc]
    return kind


def known(told: dict[str, Any], names: dict[str, Any]) -> dict[str, Any]:
    """Annotations that are text are looked up; what is not there yet, or for mypy alone, is anything."""
    try:
        return get_type_hints(SimpleNamespace(__annotations__=told), names, include_extras=True)
    except Exception:  # `"Later"`, `"pd.Series[str]"`
        each = ({name: hint} for name, hint in told.items())
        return dict.fromkeys(told, Any) if len(told) == 1 else dict(ChainMap(*(known(one, names) for one in each)))


def has_shapes(hint: Any) -> bool:
    return (inspect.isclass(hint) and issubclass(hint, AbstractArray)) or any(map(has_shapes, get_args(hint)))


def in_one_call(tested: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(tested)
    def call(*arguments: Any, **named: Any) -> Any:
        with ONE_CALL:
            return tested(*arguments, **named)

    return call


class Finder(MetaPathFinder):
    """Finds the modules of a package, for a loader that has their functions checked."""

    def __init__(self, package: str) -> None:
        self.package = package

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if f"{name}.".startswith(f"{self.package}.") else None
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            spec.loader = Loader(spec.loader.name, spec.loader.path)
        return spec


class Loader(SourceFileLoader):
    """Compiles a module with a decorator more on each function and class; what says `no_type_check` stays as it is."""

    def source_to_code(self, data: Any, path: Any, *, _optimize: int = -1) -> CodeType:  # type: ignore[override]
        tree = ast.parse(importlib.util.decode_source(data), path)
        for node in definitions(tree):
            decorate(node)
        return compile(tree, path, "exec", dont_inherit=True, optimize=_optimize)

    def exec_module(self, module: ModuleType) -> None:
        vars(module).update({FUNCTION: checked, CLASS: checked_class})
        super().exec_module(module)


Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


def definitions(tree: ast.AST) -> Iterator[Definition]:
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, Definition):
            yield from definitions(node)
        elif not any("no_type_check" in ast.dump(decorator) for decorator in node.decorator_list):
            yield from definitions(node)
            yield node


def decorate(node: Definition) -> None:
    """A function before its other decorators change it, a class after `dataclass` did."""
    first = isinstance(node, ast.ClassDef)
    name = ast.copy_location(ast.Name(CLASS if first else FUNCTION, ast.Load()), node)
    node.decorator_list.insert(0 if first else len(node.decorator_list), name)
