"""Conditions and changes as text: ``brand == "x" and price > 3``, ``price *= 1.1``. Parsed, never executed.

Python's grammar, of which only this is known: names of columns (others than identifiers in backquotes, ```unit
price```), numbers, text, True, False and None; ``+ - * / ** %``; comparisons, also ``in [...]`` and ``is None``;
``and``, ``or``, ``not``; the functions abs, exp, log, round. Changes are assignments: ``=``, ``+=``, ``-=``, ``*=``,
``/=``, several of them parted by ``;``. A missing value satisfies no comparison but ``is None``.
"""

import ast
import difflib
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from entourage.data.frames import list_columns
from entourage.errors import DataError, ParameterError

__all__ = ["Assignment", "condition", "parse_changes"]

Values: TypeAlias = NDArray[Any]  # of a column: floats with NaN, booleans, or text with None
Columns: TypeAlias = Mapping[str, Values]

_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.Mod: operator.mod,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {"abs": np.abs, "exp": np.exp, "log": np.log, "round": np.round}
_LONGEST = 2000  # characters of an expression
_QUOTED = re.compile(r"`([^`]+)`")


@dataclass(frozen=True)
class Assignment:
    """A change of one column, parsed.

    Examples
    --------
    >>> import numpy as np
    >>> (change,) = parse_changes("price *= 1.1")
    >>> change.column, change.of({"price": np.array([10.0, 20.0])}).tolist()
    ('price', [11.0, 22.0])
    """

    column: str
    text: str
    _value: ast.expr
    _names: Mapping[str, str]

    def of(self, columns: Columns) -> Values:
        """Return the new values of the column, one a row."""
        rows = len(next(iter(columns.values())))
        found = _Evaluator(columns, self._names, self.text).value(self._value)
        return np.broadcast_to(np.asarray(found, dtype=object if _is_text(found) else None), (rows,)).copy()


def parse_changes(text: str) -> list[Assignment]:
    """Parse assignments such as ``price *= 1.1; brand = "y"``; see the module."""
    tree, names = _parse(text, "exec", "A change")
    found = []
    for line in tree.body:
        if (
            isinstance(line, ast.AugAssign)
            and type(line.op) in _ARITHMETIC
            and isinstance(line.target, ast.Name)
        ):
            own: ast.expr = ast.BinOp(ast.Name(line.target.id, ast.Load()), line.op, line.value)
            target: ast.expr = line.target
        elif isinstance(line, ast.Assign) and len(line.targets) == 1:
            own, target = line.value, line.targets[0]
        else:
            target = ast.Constant(None)
        if not isinstance(target, ast.Name):
            hint = " Conditions go into where." if isinstance(line, ast.Expr) else ""
            raise ParameterError(
                f"A change assigns to a column, as in 'price *= 1.1' or 'brand = \"x\"'; got {text!r}.{hint}"
            )
        found.append(Assignment(names.get(target.id, target.id), text, own, names))
    if not found:
        raise ParameterError("A change is empty; write, for example, 'price *= 1.1'.")
    return found


def condition(text: str, columns: Columns) -> NDArray[np.bool_]:
    """Return which rows satisfy a condition; see the module.

    Examples
    --------
    >>> columns = {"brand": np.array(["x", "y", None], dtype=object), "price": np.array([2.0, np.nan, 5.0])}
    >>> condition('brand == "x" or price > 3', columns).tolist()
    [True, False, True]
    >>> condition("price is None", columns).tolist()
    [False, True, False]
    """
    tree, names = _parse(text, "eval", "A condition")
    found = _Evaluator(columns, names, text).truth(tree.body)
    return np.broadcast_to(found, (len(next(iter(columns.values()))),)).copy()


def _parse(text: str, mode: str, what: str) -> tuple[Any, dict[str, str]]:
    """Parse text; return the tree, and the columns that stand in backquotes by the names they have in it."""
    if not isinstance(text, str):
        raise ParameterError(
            f"{what} is text, such as 'price *= 1.1' or 'price > 3'; got {type(text).__name__}."
        )
    if len(text) > _LONGEST:
        raise ParameterError(f"{what} has at most {_LONGEST} characters; got {len(text)}.")
    names: dict[str, str] = {}

    def named(match: re.Match[str]) -> str:
        key = f"_column_{len(names)}"
        names[key] = match.group(1)
        return key

    try:
        return ast.parse(_QUOTED.sub(named, text).strip(), mode=mode), names
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        hint = ""
        if mode == "eval" and re.search(r"(?<![=!<>])=(?!=)", text):
            hint = " To compare, write ==."
        elif not names:
            hint = (
                " A name of a column with more than letters, digits and _ stands in backquotes: `unit price`."
            )
        reason = getattr(error, "msg", None) or str(error)
        raise ParameterError(f"{what} can't be read: {text!r} ({reason}).{hint}") from None


class _Evaluator:
    """Evaluates a parsed expression on columns."""

    def __init__(self, columns: Columns, names: Mapping[str, str], text: str) -> None:
        self.columns, self.names, self.text = columns, names, text
        self.known: dict[ast.expr, Any] = {}

    def value(self, node: ast.expr) -> Any:
        """Return an array of one value a row, or a single value; a part that is compared often is computed once."""
        if node not in self.known:
            self.known[node] = self._value(node)
        return self.known[node]

    def _value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            if node.value is None or isinstance(node.value, bool | int | float | str):
                return float(node.value) if type(node.value) is int else node.value
        elif isinstance(node, ast.Name):
            return self._column(self.names.get(node.id, node.id))
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            own = self._number(node.operand)
            return -own if isinstance(node.op, ast.USub) else own
        elif isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
            with np.errstate(all="ignore"):  # not finite: refused where it would be used
                return _ARITHMETIC[type(node.op)](
                    np.asarray(self._number(node.left)), np.asarray(self._number(node.right))
                )
        elif isinstance(node, ast.Call):
            return self._call(node)
        elif isinstance(node, ast.Compare | ast.BoolOp) or (
            isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)
        ):
            return self.truth(node)
        raise self._unknown(node)

    def truth(self, node: ast.expr) -> NDArray[np.bool_]:
        """Return which rows satisfy a condition, or one answer for all."""
        if isinstance(node, ast.BoolOp):
            parts = [self.truth(one) for one in node.values]
            joined = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
            found = parts[0]
            for one in parts[1:]:
                found = joined(found, one)
            return np.asarray(found)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return ~self.truth(node.operand)
        if isinstance(node, ast.Compare):
            found = np.asarray(True)
            left = node.left
            for how, right in zip(node.ops, node.comparators, strict=True):
                found = found & self._compare(left, how, right)
                left = right
            return found
        own = np.asarray(self.value(node))
        if own.dtype != bool:
            raise ParameterError(
                f"A condition is true or false for each row; {ast.unparse(node)!r} in {self.text!r} is neither. "
                "Compare it, as in 'price > 3'."
            )
        return own

    def _compare(self, left: ast.expr, how: ast.cmpop, right: ast.expr) -> NDArray[np.bool_]:
        if isinstance(how, ast.Is | ast.IsNot) and isinstance(right, ast.Constant) and right.value is None:
            empty = _missing(self.value(left))
            return empty if isinstance(how, ast.Is) else ~empty
        if isinstance(how, ast.In | ast.NotIn) and isinstance(right, ast.List | ast.Tuple | ast.Set):
            found = np.asarray(False)
            for one in right.elts:
                found = found | self._compare(left, ast.Eq(), one)
            return found if isinstance(how, ast.In) else ~found & ~_missing(self.value(left))
        if type(how) not in _COMPARISONS:
            raise self._unknown(ast.Compare(left, [how], [right]))
        a, b = self.value(left), self.value(right)
        if a is None or b is None:
            raise ParameterError(
                f"To find missing values, write 'is None' instead of '== None' in {self.text!r}."
            )
        if _is_text(a) != _is_text(b):
            words, numbers = (left, right) if _is_text(a) else (right, left)
            raise ParameterError(
                f"{ast.unparse(words)!r} is text and {ast.unparse(numbers)!r} is not, in {self.text!r}. Text is "
                'compared with text in quotes, as in brand == "x"; numbers without.'
            )
        empty = _missing(a) | _missing(b)
        if _is_text(a):
            a, b = (np.where(_missing(one), "", np.asarray(one, dtype=object)).astype(str) for one in (a, b))
        return np.asarray(_COMPARISONS[type(how)](np.asarray(a), np.asarray(b))) & ~empty

    def _column(self, name: str) -> Values:
        if name not in self.columns:
            close = difflib.get_close_matches(name, list(self.columns), n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ". Text stands in quotes."
            raise DataError(
                f"There is no column {name!r}, in {self.text!r}{hint} There are {list_columns(list(self.columns))}."
            )
        return self.columns[name]

    def _number(self, node: ast.expr) -> Any:
        own = self.value(node)
        if own is None or _is_text(own):
            raise ParameterError(
                f"{ast.unparse(node)!r} is text or nothing, and {self.text!r} calculates with it. Use numbers."
            )
        return np.asarray(own, dtype=np.float64) if np.asarray(own).dtype == bool else own

    def _call(self, node: ast.Call) -> Any:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in _FUNCTIONS or len(node.args) != 1 or node.keywords:
            raise ParameterError(
                f"{ast.unparse(node)!r} in {self.text!r} is not known; the functions are abs, exp, log and round, of "
                "one number each."
            )
        with np.errstate(all="ignore"):
            return _FUNCTIONS[name](np.asarray(self._number(node.args[0]), dtype=np.float64))

    def _unknown(self, node: ast.AST) -> ParameterError:
        return ParameterError(
            f"{ast.unparse(node)!r} in {self.text!r} is not known here: columns, numbers, text in quotes, arithmetic, "
            "comparisons, 'and', 'or' and 'not' are."
        )


def _is_text(values: Any) -> bool:
    return isinstance(values, str) or (isinstance(values, np.ndarray) and values.dtype.kind in "OU")


def _missing(values: Any) -> NDArray[np.bool_]:
    array = np.asarray(values)
    if array.dtype == object:
        return np.array([one is None for one in array.ravel()], dtype=np.bool_).reshape(array.shape)
    return np.isnan(array) if array.dtype.kind == "f" else np.zeros(array.shape, dtype=bool)
