"""The grammar of clauses: a part of the Common Expression Language, small enough to explain on a page.

    clause     = or ['?' or ':' clause]
    or         = and {'||' and}
    and        = relation {'&&' relation}
    relation   = sum [('<' '<=' '>' '>=' '==' '!=') sum | 'in' '[' clause {',' clause} ']']
    sum        = product {('+' | '-') product}
    product    = unary {('*' | '/' | '%') unary}
    unary      = ('!' | '-') unary | member
    member     = primary {'.' name '(' clause {',' clause} ')'}
    primary    = literal | device '.' reading | function '(' clause {',' clause} ')' | '(' clause ')'

Every node of the tree knows the character at which it begins, so that a mistake can be pointed at.
"""

import re
from typing import NamedTuple

import msgspec

from comesh.deployment.problems import WrongError, quote
from comesh.deployment.values import INT_MAX

MAX_CHARACTERS = 2000
MAX_TOKENS = 300
MAX_DEPTH = 24
"""Brackets, signs and conditions inside of each other; the evaluator itself stops at 96."""

RESERVED = frozenset(
    {"true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"}
    | {"import", "let", "loop", "package", "namespace", "return", "var", "void", "while"}
)
"""Words that CEL keeps to itself."""

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\n]+)
  | (?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
  | (?P<int>[0-9]+)
  | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
  | (?P<sign>\|\||&&|<=|>=|==|!=|[-+*/%<>!?:.,()\[\]])
    """,
    re.VERBOSE | re.ASCII,
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}
_WORDS_FOR_SIGNS = {"and": "&&", "or": "||", "not": "!", "AND": "&&", "OR": "||", "NOT": "!"}
_RELATIONS = ("<", "<=", ">", ">=", "==", "!=")


class ClauseError(WrongError):
    """A clause that cannot be read; offset is the character at which it fails."""

    def __init__(self, offset: int, what: str, fix: str = "") -> None:
        super().__init__(what, fix)
        self.offset = offset


class Expression(msgspec.Struct, frozen=True, kw_only=True):
    at: int


class Literal(Expression, frozen=True):
    value: bool | int | float | str


class Reading(Expression, frozen=True):
    """`device.reading`"""

    device: str
    reading: str
    reading_at: int


class Unary(Expression, frozen=True):
    sign: str
    operand: Expression


class Binary(Expression, frozen=True):
    """at is where the sign stands."""

    sign: str
    left: Expression
    right: Expression


class Conditional(Expression, frozen=True):
    condition: Expression
    then: Expression
    otherwise: Expression


class OneOf(Expression, frozen=True):
    """`item in [a, b]`"""

    item: Expression
    items: tuple[Expression, ...]


class Call(Expression, frozen=True):
    """A function, or a method with its object as the first argument."""

    function: str
    method: bool
    arguments: tuple[Expression, ...]


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


def parse(source: str) -> Expression:
    """The tree of a clause. Raises ClauseError."""
    return _Parser(source).clause()


def _tokens(source: str) -> list[_Token]:
    if len(source) > MAX_CHARACTERS:
        raise ClauseError(0, f"the clause is longer than {MAX_CHARACTERS} characters", "split the routine")
    tokens: list[_Token] = []
    at = 0
    while at < len(source):
        found = _TOKEN.match(source, at)
        if found is None:
            raise _unreadable(source, at)
        kind = str(found.lastgroup)
        if kind != "space":
            tokens.append(_Token(kind, found.group(), at))
        at = found.end()
    if len(tokens) > MAX_TOKENS:
        raise ClauseError(0, f"the clause has more than {MAX_TOKENS} words and signs", "split the routine")
    return tokens


def _unreadable(source: str, at: int) -> ClauseError:
    match source[at]:
        case "=":
            return ClauseError(at, "'=' is not a comparison", "write ==")
        case "&" | "|" as sign:
            return ClauseError(at, f"a single '{sign}' means nothing here", f"write {sign}{sign}")
        case "'" | '"':
            return ClauseError(at, "a quote is opened but never closed", "close it")
        case "{" if source[at : at + 2] in ("{{", "{%"):
            return ClauseError(
                at,
                "a clause is not a template",
                "write the condition itself, such as hall_temp.celsius > 26",
            )
        case other:
            return ClauseError(at, f"the character {quote(other)} means nothing here")


class _Parser:
    def __init__(self, source: str) -> None:
        self._tokens = _tokens(source)
        self._end = len(source)
        self._next = 0
        self._depth = 0

    def clause(self) -> Expression:
        if not self._tokens:
            raise ClauseError(0, "the clause is empty", "remove it, or say when the routine fires")
        tree = self._conditional()
        if self._next < len(self._tokens):
            raise self._unexpected()
        return tree

    def _peek(self) -> str:
        """The next sign or the word `in`, or nothing."""
        if self._next == len(self._tokens):
            return ""
        token = self._tokens[self._next]
        return token.text if token.kind == "sign" or token.text == "in" else ""

    def _take(self) -> _Token:
        if self._next == len(self._tokens):
            raise ClauseError(max(self._end - 1, 0), "the clause ends too early")
        token = self._tokens[self._next]
        self._next += 1
        return token

    def _expect(self, sign: str) -> None:
        if self._peek() != sign:
            raise self._unexpected(f"'{sign}' is missing")
        self._next += 1

    def _unexpected(self, what: str = "") -> ClauseError:
        if self._next == len(self._tokens):
            return ClauseError(max(self._end - 1, 0), what or "the clause ends too early")
        token = self._tokens[self._next]
        if token.text in _WORDS_FOR_SIGNS:
            return ClauseError(
                token.at, f"'{token.text}' is not known", f"write {_WORDS_FOR_SIGNS[token.text]}"
            )
        if token.text in _RELATIONS:
            return ClauseError(token.at, "comparisons cannot be chained", "join two of them with &&")
        return ClauseError(token.at, what or f"{quote(token.text)} does not fit here")

    def _deeper(self, at: int) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ClauseError(at, f"nested more than {MAX_DEPTH} levels deep", "split the routine")

    def _conditional(self) -> Expression:
        condition = self._or()
        if self._peek() != "?":
            return condition
        at = self._take().at
        self._deeper(at)
        then = self._or()
        self._expect(":")
        otherwise = self._conditional()
        self._depth -= 1
        return Conditional(at=at, condition=condition, then=then, otherwise=otherwise)

    def _or(self) -> Expression:
        left = self._and()
        while self._peek() == "||":
            at = self._take().at
            left = Binary(at=at, sign="||", left=left, right=self._and())
        return left

    def _and(self) -> Expression:
        left = self._relation()
        while self._peek() == "&&":
            at = self._take().at
            left = Binary(at=at, sign="&&", left=left, right=self._relation())
        return left

    def _relation(self) -> Expression:
        left = self._sum()
        sign = self._peek()
        if sign == "in":
            at = self._take().at
            self._expect("[")
            return OneOf(at=at, item=left, items=self._list("]"))
        if sign in _RELATIONS:
            at = self._take().at
            return Binary(at=at, sign=sign, left=left, right=self._sum())
        return left

    def _sum(self) -> Expression:
        left = self._product()
        while self._peek() in ("+", "-"):
            token = self._take()
            left = Binary(at=token.at, sign=token.text, left=left, right=self._product())
        return left

    def _product(self) -> Expression:
        left = self._unary()
        while self._peek() in ("*", "/", "%"):
            token = self._take()
            left = Binary(at=token.at, sign=token.text, left=left, right=self._unary())
        return left

    def _unary(self) -> Expression:
        if self._peek() not in ("!", "-"):
            return self._member()
        token = self._take()
        self._deeper(token.at)
        operand = self._unary()
        self._depth -= 1
        return Unary(at=token.at, sign=token.text, operand=operand)

    def _member(self) -> Expression:
        tree = self._primary()
        while self._peek() == ".":
            self._take()
            name = self._name()
            self._expect("(")
            arguments = self._list(")")
            tree = Call(at=name.at, function=name.text, method=True, arguments=(tree, *arguments))
        return tree

    def _name(self) -> _Token:
        token = self._take()
        if token.kind != "name":
            raise ClauseError(token.at, f"expected a name, got {quote(token.text)}")
        return token

    def _list(self, closing: str) -> tuple[Expression, ...]:
        items: list[Expression] = []
        while self._peek() != closing:
            if items:
                self._expect(",")
            self._deeper(self._tokens[min(self._next, len(self._tokens) - 1)].at)
            items.append(self._conditional())
            self._depth -= 1
        self._take()
        return tuple(items)

    def _primary(self) -> Expression:
        token = self._take()
        match token.kind:
            case "int":
                if int(token.text) > INT_MAX:
                    raise ClauseError(token.at, f"the number {quote(token.text)} is too large")
                return Literal(at=token.at, value=int(token.text))
            case "float":
                number = float(token.text)
                if number == float("inf"):
                    raise ClauseError(token.at, f"the number {quote(token.text)} is too large")
                return Literal(at=token.at, value=number)
            case "text":
                return Literal(at=token.at, value=_unescape(token))
            case "name":
                return self._named(token)
            case _ if token.text == "(":
                self._deeper(token.at)
                inner = self._conditional()
                self._expect(")")
                self._depth -= 1
                return inner
            case _:
                self._next -= 1
                raise self._unexpected()

    def _named(self, token: _Token) -> Expression:
        if token.text in ("true", "false"):
            return Literal(at=token.at, value=token.text == "true")
        if token.text in RESERVED or token.text in _WORDS_FOR_SIGNS:
            self._next -= 1
            raise self._unexpected()
        if self._peek() == "(":
            self._take()
            return Call(at=token.at, function=token.text, method=False, arguments=self._list(")"))
        if self._peek() != ".":
            return Reading(at=token.at, device=token.text, reading="", reading_at=token.at)
        self._take()
        reading = self._name()
        return Reading(at=token.at, device=token.text, reading=reading.text, reading_at=reading.at)


def _unescape(token: _Token) -> str:
    def replace(found: re.Match[str]) -> str:
        code = found.group(1)
        if code[0] in "uU" and len(code) > 1:
            number = int(code[1:], 16)
            if number > 0x10FFFF or 0xD800 <= number <= 0xDFFF:
                raise ClauseError(token.at + 1 + found.start(), f"'\\{code}' is not a character")
            return chr(number)
        if code not in _ESCAPES:
            raise ClauseError(
                token.at + 1 + found.start(), f"'\\{code}' means nothing here", "write \\\\ for a \\"
            )
        return _ESCAPES[code]

    return _ESCAPE.sub(replace, token.text[1:-1])
