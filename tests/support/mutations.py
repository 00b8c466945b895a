"""What can be changed in a source text for tests to notice."""

import ast
import re
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate

SWAPS = {
    **{ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">")},
    **{ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.In: ("in", "not in")},
    **{ast.NotIn: ("not in", "in"), ast.Is: ("is", "is not"), ast.IsNot: ("is not", "is")},
    **{ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*")},
    **{ast.FloorDiv: ("//", "*"), ast.Mod: ("%", "*"), ast.And: ("and", "or")},
    ast.Or: ("or", "and"),
}
"""Operator -> its text, and that of one which groups alike and replaces it."""

LEFT_ALONE = re.compile(
    r"(log|log_\w+|debug|info|warning|error|exception|warn|print|echo"  # texts for people
    r"|Option|Argument|TypeVar|NewType|cast)$"  # declarations
)
NO_MATTER = ("encoding", "strict", "help")
"""Keyword arguments that no test can be asked to miss."""


@dataclass(frozen=True)
class Mutation:
    """The bytes from `start` to `end` become `text`.

    `key` is its function and its number there, which stay when other functions change; `shown` is
    before and after, shortened.
    """

    key: str
    line: int
    start: int
    end: int
    text: str
    shown: str

    def applied(self, source):
        return source[: self.start] + self.text.encode() + source[self.end :]


def mutations(source):
    """All mutations of a source text (bytes), in its order."""
    starts = [0, *accumulate(map(len, source.splitlines(keepends=True)))]
    numbers = Counter()
    found = []

    def span(node):
        first, last = starts[node.lineno - 1], starts[node.end_lineno - 1]
        return first + node.col_offset, last + node.end_col_offset

    def add(scope, start, end, text, after=None):
        numbers[scope] += 1
        line = source.count(b"\n", 0, start) + 1
        before, after = source[start:end].decode(), after or text
        shown = " -> ".join(re.sub(r"\s+", " ", part)[:60] for part in (before, after))
        found.append(Mutation(f"{scope}:{numbers[scope]}", line, start, end, text, shown))

    def swap(scope, left, operator, right):
        old, new = SWAPS.get(type(operator), (None, None))
        if old and (at := source.find(old.encode(), span(left)[1], span(right)[0])) >= 0:
            add(scope, at, at + len(old), new)

    def visit(node, scope="", message=False):
        inside = list(ast.iter_child_nodes(node))
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if any("abstract" in ast.unparse(decorator) for decorator in node.decorator_list):
                    return
                inside = [*node.args.defaults, *filter(None, node.args.kw_defaults), *node.body]
                scope = f"{scope}.{node.name}"
            case ast.ClassDef():
                inside = node.body
                scope = f"{scope}.{node.name}"
            case ast.AnnAssign():
                inside = [node.value] if node.value else []
            case ast.Assign(targets=[ast.Name(id=name)]) if name.startswith("__"):
                return
            case ast.Subscript(value=value) if ast.unparse(value).endswith("Literal"):
                return
            case ast.JoinedStr() | ast.Expr(value=ast.Constant()):  # texts for people, docstrings
                return
            case ast.Raise():
                message = True
            case ast.If(test=test) if re.search("TYPE_CHECKING|__main__", ast.unparse(test)):
                inside = node.orelse
            case ast.If() | ast.IfExp():
                if not isinstance(node.test, ast.Compare | ast.UnaryOp):  # these have their own
                    start, end = span(node.test)
                    add(scope, start, end, f"not ({source[start:end].decode()})")
            case ast.Compare():
                operands = [node.left, *node.comparators]
                for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
                    swap(scope, left, operator, right)
            case ast.BoolOp():
                for left, right in zip(node.values, node.values[1:], strict=False):
                    swap(scope, left, node.op, right)
            case ast.BinOp():
                swap(scope, node.left, node.op, node.right)
            case ast.UnaryOp(op=ast.Not()):
                start, end = span(node)
                add(scope, start, end, source[start + len("not") : end].decode().lstrip())
            case ast.Constant(value=bool(value)):
                add(scope, *span(node), repr(not value))
            case ast.Constant(value=int(value) | float(value)):
                add(scope, *span(node), repr(value + 1))
            case ast.Constant(value=str(value)):
                if not message and not re.search(r"\s", value):
                    add(scope, *span(node), repr(value + "x"))
            case ast.Return(value=ast.Constant(value=None)):
                return
            case ast.Return(value=ast.expr() as value):
                add(scope, *span(value), "None")
            case ast.Expr(value=ast.Call() as call) if not LEFT_ALONE.match(_name(call)):
                add(scope, *span(node), "pass")
            case ast.Call() if LEFT_ALONE.match(_name(node)):
                return
            case ast.Call():
                inside = [node.func, *node.args]
                for keyword in node.keywords:
                    if keyword.arg and keyword.arg not in NO_MATTER:
                        add(scope, *span(keyword), "**{}", "nothing")
                    if keyword.arg not in NO_MATTER:
                        inside.append(keyword.value)
        for part in inside:
            visit(part, scope, message)

    visit(ast.parse(source))
    return found


def _name(call):
    return getattr(call.func, "attr", getattr(call.func, "id", ""))
