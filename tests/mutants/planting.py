"""The small bugs that can be planted in a source: one operator, constant, bound or statement at a time."""

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

COMPARED: dict[type, tuple[str, str]] = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}  # fmt: skip
TURNED: dict[type, str] = {ast.Lt: ">", ast.LtE: ">=", ast.Gt: "<", ast.GtE: "<="}
COMPUTED: dict[type, tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"), ast.Pow: ("**", "*"), ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.LShift: ("<<", ">>"),
    ast.RShift: (">>", "<<"), ast.BitXor: ("^", "|"),
}  # fmt: skip
NAMES = {
    "min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum", "argmin": "argmax", "argmax": "argmin",
    "amin": "amax", "amax": "amin", "any": "all", "all": "any", "sum": "mean", "mean": "sum", "floor": "ceil",
    "ceil": "floor", "idxmax": "idxmin", "idxmin": "idxmax",
}  # fmt: skip
DROPPED = frozenset(("abs", "sorted", "reversed", "set", "round"))
"""Calls of one value that are replaced by the value."""

Function = ast.FunctionDef | ast.AsyncFunctionDef
SAID = (ast.JoinedStr, ast.Raise, ast.Assert)
"""What is only said or asserted is left alone: messages have tests of their own."""


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """A source with one small bug: the characters from `start` to `stop` are replaced."""

    path: str
    line: int
    function: str  # its name with those around it, empty at the top of the module
    text: str  # of the line
    start: int
    stop: int
    before: str
    after: str
    number: int = 0  # among those that read the same

    @property
    def name(self) -> str:
        """The same after changes elsewhere in the file."""
        again = f" ({self.number})" if self.number else ""
        return f"{self.path}::{self.function or 'module'}: {self.text}: {self.before} → {self.after}{again}"

    def digest(self, seed: int) -> str:
        return hashlib.sha256(f"{seed}/{self.name}".encode()).hexdigest()

    def planted(self, source: str) -> str:
        return source[: self.start] + self.after + source[self.stop :]


def as_module(path: str) -> str:
    """`src/heedful/text/splits.py` is heedful.text.splits."""
    return path.removeprefix("src/").removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def mutants(path: str, source: str) -> list[Mutant]:
    """All bugs that can be planted in a source; few of them are no Python any more (`compiles`)."""
    seen: Counter[str] = Counter()
    found = []
    for one in Planter(path, source).of(ast.parse(source), ""):
        found.append(replace(one, number=seen[one.name]))
        seen[one.name] += 1
    return found


def compiles(mutant: Mutant, source: str) -> bool:
    """Whether it is Python, and another program than before."""
    try:
        return ast.dump(ast.parse(mutant.planted(source))) != ast.dump(ast.parse(source))
    except SyntaxError:
        return False


class Planter:
    """Goes through the tree of one source."""

    def __init__(self, path: str, source: str) -> None:
        self.path, self.source, self.lines = path, source, source.split("\n")
        self.begins = [0]
        for line in self.lines:
            self.begins.append(self.begins[-1] + len(line) + 1)

    def of(self, node: ast.AST, function: str) -> Iterator[Mutant]:
        for start, stop, after in self._changes(node):
            line = self.source.count("\n", 0, start)
            yield Mutant(
                path=self.path,
                line=line + 1,
                function=function,
                text=" ".join(self.lines[line].split()),
                start=start,
                stop=stop,
                before=self.source[start:stop],
                after=after,
            )
        inside = function
        if isinstance(node, Function | ast.ClassDef):
            inside = f"{function}.{node.name}".lstrip(".")
        for child in looked_at(node):
            yield from self.of(child, inside)

    def _changes(self, node: ast.AST) -> Iterator[tuple[int, int, str]]:
        """Which characters become which others."""
        match node:
            case ast.Compare(left=left, ops=ops, comparators=others):
                for a, operator, b in zip([left, *others], ops, others, strict=False):
                    yield from self._operator(a, b, *COMPARED[type(operator)])
                    if type(operator) in TURNED:
                        yield from self._operator(a, b, COMPARED[type(operator)][0], TURNED[type(operator)])
            case ast.BinOp(left=left, op=op, right=right) if type(op) in COMPUTED and not is_text(left, right):
                yield from self._operator(left, right, *COMPUTED[type(op)])
            case ast.AugAssign(target=target, op=op, value=value) if type(op) in COMPUTED and not is_text(value):
                old, new = COMPUTED[type(op)]
                yield from self._operator(target, value, old + "=", new + "=")
            case ast.BoolOp(op=op, values=values):
                words = ("and", "or") if isinstance(op, ast.And) else ("or", "and")
                for a, b in pairwise(values):
                    yield from self._operator(a, b, *words)
            case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert(), operand=operand):
                yield self._start(node), self._stop(node), f"({self._text(operand)})"
            case ast.Constant(value=bool() as value):
                yield self._start(node), self._stop(node), str(not value)
            case ast.Constant(value=int() as value):
                yield self._start(node), self._stop(node), str(value + 1)
                yield self._start(node), self._stop(node), str(value - 1) if value else "-1"
            case ast.Constant(value=float() as value):
                yield self._start(node), self._stop(node), repr(value * 2 or 1.0)
                yield self._start(node), self._stop(node), repr(-value or -1.0)
            case ast.Call(func=called):
                yield from self._call(node, called)
            case ast.Slice(lower=lower, upper=upper):
                for bound in (lower, upper):
                    if bound is not None and not isinstance(bound, ast.Constant):
                        yield self._start(bound), self._stop(bound), f"({self._text(bound)}) + 1"
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                if not isinstance(test, ast.UnaryOp):
                    yield self._start(test), self._stop(test), f"(not ({self._text(test)}))"
            case ast.comprehension(ifs=tests):
                for test in tests:
                    yield self._start(test), self._stop(test), "True"
            case ast.Break():
                yield self._start(node), self._stop(node), "continue"
            case ast.Continue():
                yield self._start(node), self._stop(node), "break"
            case ast.Expr(value=ast.Call()):
                yield self._start(node), self._stop(node), "pass"
            case ast.Return(value=ast.expr() as value) if not isinstance(value, ast.Constant):
                yield self._start(value), self._stop(value), "None"

    def _call(self, node: ast.Call, called: ast.expr) -> Iterator[tuple[int, int, str]]:
        name = called.attr if isinstance(called, ast.Attribute) else called.id if isinstance(called, ast.Name) else ""
        if name in NAMES and not (isinstance(called, ast.Name) and name in ("sum", "mean")):
            yield self._stop(called) - len(name), self._stop(called), NAMES[name]
        if name in DROPPED and isinstance(called, ast.Name) and len(node.args) == 1:
            yield self._start(node), self._stop(node), f"({self._text(node.args[0])})"
        if name == "abs" and isinstance(called, ast.Attribute) and not node.args:
            yield self._stop(called.value), self._stop(node), ""

    def _operator(self, left: ast.expr, right: ast.expr, old: str, new: str) -> Iterator[tuple[int, int, str]]:
        """The operator stands between its two sides, perhaps with brackets."""
        start, stop = self._stop(left), self._start(right)
        words = r"\s+".join(map(re.escape, old.split()))
        found = re.search(rf"\b{words}\b" if old[0].isalpha() else words, self.source[start:stop])
        if found:
            yield start + found.start(), start + found.end(), new

    def _text(self, node: ast.expr) -> str:
        return self.source[self._start(node) : self._stop(node)]

    def _start(self, node: ast.expr | ast.stmt) -> int:
        return self._place(node.lineno, node.col_offset)

    def _stop(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._place(node.end_lineno, node.end_col_offset)

    def _place(self, line: int, column: int) -> int:
        """Columns count bytes."""
        return self.begins[line - 1] + len(self.lines[line - 1].encode()[:column].decode())


def looked_at(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a node without annotations, decorators and what is only said."""
    left_out: list[ast.AST | None] = []
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            left_out = [node.returns, *node.decorator_list]
        case ast.ClassDef():
            left_out = [*node.decorator_list]
        case ast.arg():
            return
        case ast.AnnAssign():
            left_out = [node.annotation]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant()):
            return  # changed as a whole: its sign
        case ast.Assign(value=ast.Subscript()) if is_type(node):
            return
    for child in ast.iter_child_nodes(node):
        if child not in left_out and not isinstance(child, SAID):
            yield child


def is_type(node: ast.Assign) -> bool:
    """`Numbers = NDArray[np.int64]`: a name for a type."""
    value = node.value
    return isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name) and value.value.id[0].isupper()


def is_text(*nodes: ast.expr) -> bool:
    """Such as the two halves of a message: what is not a number anyway."""
    return any(
        isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str | bytes))
        for node in nodes
    )
