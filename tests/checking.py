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
from dataclasses import dataclass
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CellType, CodeType, FunctionType, ModuleType, SimpleNamespace
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


def checked(function: Any) -> Any:
    """The function, whose annotations hold or it raises; axes of one name are equal within a call."""
    if not function.__annotations__:
        return function
    if inspect.isgeneratorfunction(function):
        function = begun(function)
    elif "<locals>" in function.__qualname__:
        return within(function).around(function)
    return Checks.of(function).around(function)


def begun(generator: Callable[..., Any]) -> Callable[..., Any]:
    """Arguments are checked where it is called, not where its first value is asked for."""

    def call(*arguments: Any, **named: Any) -> Any:
        return generator(*arguments, **named)

    return functools.update_wrapper(call, generator)


@dataclass(frozen=True, kw_only=True)
class Checks:
    """What beartype wrote to check a function, which is a default argument of it."""

    function: Any
    tested: Any
    told: dict[str, Any]
    shapes: bool

    @classmethod
    def of(cls, function: Any) -> "Checks":
        told = function.__annotations__
        function.__annotations__ = hints = known(told, inspect.unwrap(function).__globals__)
        tested = beartype(function)
        function.__annotations__ = tested.__annotations__ = told
        return cls(function=function, tested=tested, told=told, shapes=any(map(has_shapes, hints.values())))

    def around(self, function: Any) -> Any:
        """The same checks for another function of the same code."""
        return in_one_call(self._put(function)) if self.shapes else self._put(function)

    def _put(self, function: Any) -> Any:
        if function is self.function:
            return self.tested
        if self.tested is self.function:  # there is nothing to check
            return function
        parts = self.tested.__kwdefaults__
        copy = FunctionType(self.tested.__code__, self.tested.__globals__)
        copy.__kwdefaults__ = {name: function if part is self.function else part for name, part in parts.items()}
        assert copy.__kwdefaults__ != parts, "beartype keeps its functions elsewhere now"
        return functools.update_wrapper(copy, function)


WITHIN: dict[CodeType, Checks] = {}


def within(function: Any) -> Checks:
    """Of a function within a function, which is made anew at every call: its checks are written once.

    They are written for one that has nothing around it, so that nothing is kept alive.
    """
    found = WITHIN.get(function.__code__)
    if found is None or found.told != function.__annotations__:
        code = function.__code__
        bare = FunctionType(code, function.__globals__, closure=tuple(CellType() for _ in code.co_freevars))
        bare.__kwdefaults__, bare.__defaults__ = function.__kwdefaults__, function.__defaults__
        bare.__annotations__, bare.__qualname__ = function.__annotations__, function.__qualname__
        found = WITHIN[code] = Checks.of(bare)
    return found


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

    def get_code(self, fullname: str) -> CodeType:
        """From its source: bytecode that is kept beside it has no checks, and is for others."""
        path = self.get_filename(fullname)
        tree = ast.parse(importlib.util.decode_source(self.get_data(path)), path)
        for node in definitions(tree):
            decorate(node)
        return compile(tree, path, "exec", dont_inherit=True)

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
