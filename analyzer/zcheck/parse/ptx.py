"""PTX text → facts: what a parser of some ZLUDA release would trip over, function by function.

One pass: comments and strings go, braces part the module into directives and bodies, and each body is searched once
for the dotted names of its statements. What is kept is what the replay needs (``coverage/replay.py``); operands are
looked at only for the few forms in ``TRAITS``. Source of the language: NVIDIA, "PTX ISA".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from zcheck.model.base import DEFAULT_LIMITS, Limits, Problem
from zcheck.model.device_code import PtxDirective, PtxFunction, PtxModule
from zcheck.parse.anchors import Anchors

PARSER = "ptx-2"
"""changes whenever the facts change, so that cached ones are read again"""

MAX_FUNCTIONS = 200_000
MAX_DISTINCT = 100_000
MAX_BRACES = 5_000_000
"""braces looked at one by one: forty times as many as in the largest texts of real packages"""
TRAITS = {
    "setp-two-destinations": "setp with two destinations",
    "bar-red-thread-count": "bar.red with a thread count",
    "function-pointer": "the address of a function",
    "indirect-call": "an indirect call",
    "ptr-space": "a .ptr parameter with a state space other than .global",
}
"""operand forms that are reported of a function, and what they are"""

# The one statement without an end of its own.
_LOCATION = re.compile(
    rb"\.loc\s+\d+\s+\d+\s+\d+(?:\s*,\s*function_name\s+[\w$%]+(?:\s*\+\s*\d+)?\s*,\s*inlined_at\s+\d+\s+\d+\s+\d+)?"
)
_BRACES = Anchors((b"{", b"}"))
_STEP = 64 * 1024
# What has to be looked for in each body only where the text has any of it.
_FEATURES = {
    b"::": "double colon", b"bar.red": "barrier", b"bar.cta.red": "barrier", b".shared ": "shared",
    b".shared\t": "shared", b".shared\n": "shared", b".shared\r": "shared", b".loc": "location",
    b".callprototype": "inner", b".calltargets": "inner", b".branchtargets": "inner",
}  # fmt: skip
_FEATURE_STARTS = Anchors(tuple(_FEATURES))
_FEATURE_NAMES = tuple(_FEATURES.values())
# A statement begins behind ; : or a brace that is no operand's; an operand's brace follows a comma or a space after the
# opcode, so it never follows ; : } directly. With : and } turned into ; and the colons of modifiers into a byte of
# their own, the pattern begins with a literal, which is twice as fast. What it misreads (lower-case labels, spaces
# before dots) shows in the dotted names, and those bodies are read again with the exact one.
_ENDS = bytes.maketrans(b":}", b";;")
_DOUBLE = b"\x01"
_STATEMENT = re.compile(rb";[\s{]*(?:@!?\s*[\w%$]+\s+|)([a-z][\w.\x01]*)")
_EXACT = re.compile(rb"[;:}][\s{]*(?:@!?\s*[\w%$]+\s+|)([a-z]\w*(?:\s*\.\w+(?:::\w+)*)*)(?!\s*:|\w)")
_COMMENT = re.compile(rb"//[^\n]*")
_STRING = re.compile(rb'"[^"]*"')
_COMMENT_IN_STRING = re.compile(rb'"[^"\n]*//')
_SPECIAL = re.compile(
    rb"%(tid|ntid|laneid|warpid|nwarpid|ctaid|nctaid|smid|nsmid|gridid|is_explicit_cluster"
    rb"|clusterid|nclusterid|cluster_ctaid|cluster_nctaid|cluster_ctarank|cluster_nctarank|lanemask_\w+|clock\w*|pm\d+\w*"
    rb"|envreg\d+|globaltimer\w*|reserved_smem_\w+|total_smem_size|aggr_smem_size|dynamic_smem_size|current_graph_exec)\b"
)
# How those begin: a text has millions of other registers.
_SPECIAL_STARTS = Anchors(
    [
        b"%" + start
        for start in (
            b"tid", b"ntid", b"lane", b"warpid", b"nwarpid", b"ctaid", b"nctaid", b"smid", b"nsmid", b"gridid", b"is_",
            b"cluster", b"ncluster", b"clock", b"pm", b"envreg", b"globaltimer", b"reserved_", b"total_", b"aggr_",
            b"dynamic_", b"current_",
        )
    ]
)  # fmt: skip
_CALL = re.compile(rb"[\s;:{}]call(?:\.uni)?\s*(?:\([^();{}]*\)\s*,\s*)?([\w$%]+)")
_ADDRESS = re.compile(rb"mov\.[bu](?:64|32)\s+[\w%$]+\s*,\s*([A-Za-z_$][\w$]*)\s*;")
_SETP_TWO = re.compile(rb"setp\.[\w.]{1,40}\s+[\w%$]{1,200}\s*\|")
_BAR_COUNT = re.compile(rb"bar(?:\.cta)?\.red\.[\w.]{1,40}[^;,]{1,200},[^;,]{1,200},[^;,]{1,200},")
_SHARED = re.compile(
    rb"\.shared\s+(?:\.align\s+\d+\s+)?\.(?:v([248])\s+)?\.?([a-z]+)(\d{1,3})\s+[\w$]+((?:\[\d+\])*)\s*;"
)
_HEADER = re.compile(
    rb"\s*(?:\.version\s+([\d.]+)|\.target\s+(\w+(?:\s*,\s*\w+)*)|\.address_size\s+(\d+)"
    rb"|\.file\s+\d+\s*(?:,\s*\d+\s*,\s*\d+)?|\.section\s+[.\w]+)"
)
_FUNCTION = re.compile(rb"\.(entry|func)\b")
_ATTRIBUTE = re.compile(rb"\.\w+\s*(?:\([^()]*\))?\s*")
_WORD = re.compile(rb"\.[a-z]\w*")
_NAME = re.compile(rb"[A-Za-z_$%][\w$]*")
# Every byte that some token of ZLUDA's lexer may hold (ptx_parser/src/lib.rs, ``enum Token``), quotes being gone.
_LEXABLE = bytes(c for c in range(128) if chr(c).isalnum() or chr(c) in " \t\r\n\f\v_.,:;@|!()[]{}<>-+=%$")
_LONE = re.compile(rb"_(?![\w$])")
_PLAIN_WORDS = {b".visible", b".extern", b".weak", b".global", b".const", b".shared"}
# Directives that stand as statements in a body, beside declarations of variables.
_INNER = re.compile(rb"\.(?:callprototype|calltargets|branchtargets)\b")


def read_ptx(data: bytes, limits: Limits = DEFAULT_LIMITS) -> PtxModule:
    """The facts of one PTX text. Odd text gives fewer facts, never an exception."""
    size = len(data)
    problems: list[Problem] = []
    if size > limits.payload:
        problems.append(Problem("", f"PTX is larger than the limit of {limits.payload} bytes", limits.payload, True))
        data = data[: limits.payload]
    text = _quiet(data)
    features = {_FEATURE_NAMES[number] for number in _FEATURE_STARTS.present(text)}
    if "location" in features:
        text = _LOCATION.sub(b" ", text)
    return _Reader(text, problems, features).module(size)


def _quiet(text: bytes) -> bytes:
    """The text with a space in place of each comment and string."""
    if b"/*" not in text and not _COMMENT_IN_STRING.search(text):
        text = _COMMENT.sub(b" ", text)
        return _STRING.sub(b" ", text) if b'"' in text else text
    return _quiet_slowly(text)


def _quiet_slowly(text: bytes) -> bytes:
    parts: list[bytes] = []
    done = 0
    slash, quote = text.find(b"/"), text.find(b'"')
    while slash >= 0 or quote >= 0:
        if slash >= 0 and (quote < 0 or slash < quote):
            start, opener = slash, text[slash : slash + 2]
            if opener == b"//":
                end = text.find(b"\n", start)
            elif opener == b"/*":
                end = text.find(b"*/", start + 2) + 2
                if end == 1:
                    break
            else:
                slash = text.find(b"/", start + 1)
                continue
        else:
            start = quote
            end = text.find(b'"', start + 1) + 1
            if end == 0:
                break
        if end < 0:
            end = len(text)
        parts += (text[done:start], b" ")
        done = end
        if slash >= 0 and slash < done:
            slash = text.find(b"/", done)
        if quote >= 0 and quote < done:
            quote = text.find(b'"', done)
    parts.append(text[done:])
    return b"".join(parts)


def _stray(text: bytes) -> str | None:
    odd = text.translate(None, _LEXABLE)
    if odd:
        return "the byte " + (repr(chr(odd[0])) if 32 < odd[0] < 127 else f"0x{odd[0]:02x}")
    for match in _LONE.finditer(text):
        at = match.start()
        if at == 0 or not (text[at - 1 : at].isalnum() or text[at - 1 : at] in (b"_", b"$", b"%")):
            return "a lone _"
    return None


class _Reader:
    """State of one reading: tables of distinct statements and directives, and the functions so far."""

    def __init__(self, text: bytes, problems: list[Problem], features: set[str]) -> None:
        self.text = text
        self.features = features
        self.problems = problems
        self.statements: dict[bytes, int] = {}
        self.functions: list[PtxFunction] = []
        self.directives: dict[PtxDirective, None] = {}
        self.bodies: list[tuple[int, bytes]] = []
        self.version = self.target = ""
        self.options: tuple[str, ...] = ()
        self.address_size: int | None = None
        self.textures: list[str] = []
        self.surfaces: list[str] = []
        self.extern_shared = False
        self.header_ok = True
        self.calling: set[int] = set()
        self.braces = 0

    def module(self, size: int) -> PtxModule:
        self.header_ok = self.text.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b".version")
        for head, body in self._top_level():
            if len(self.functions) >= MAX_FUNCTIONS:
                self.problems.append(Problem("", f"PTX holds more than {MAX_FUNCTIONS} functions", None, True))
                break
            *finished, last = head.split(b";")
            for piece in finished:
                self._directive(piece, None)
            self._directive(last, body)
        self._second_look()
        return PtxModule(
            version=self.version,
            target=self.target,
            options=self.options,
            address_size=self.address_size,
            statements=tuple(_dotted(statement) for statement in self.statements),
            functions=tuple(self.functions),
            directives=tuple(self.directives),
            textures=tuple(self.textures),
            surfaces=tuple(self.surfaces),
            extern_shared=self.extern_shared,
            stray=_stray(self.text),
            header_ok=self.header_ok and bool(self.target),
            size=size,
            problems=tuple(self.problems),
        )

    def _top_level(self) -> Iterator[tuple[bytes, bytes | None]]:
        """Text outside all braces with the braced text behind it, in order; the last one has none."""
        text, gap = self.text, 0
        while (start := text.find(b"{", gap)) >= 0:
            end = self._closing(start)
            if end is None:
                self.problems.append(Problem("", "PTX ends inside of a body", start, True))
                yield text[gap:start], text[start:]
                return
            yield text[gap:start], text[start : end + 1]
            gap = end + 1
        yield text[gap:], None

    def _closing(self, start: int) -> int | None:
        """Where the brace at ``start`` is closed."""
        text, depth, at, step = self.text, 0, start, 256
        while at < len(text):
            # Small at first, as most of a text's bodies may be; never all of a long text for each of them.
            stop = min(at + step, len(text))
            closing = text.count(b"}", at, stop)
            if depth > closing or self.braces > MAX_BRACES:  # it cannot be closed here, or nobody wrote this
                depth += text.count(b"{", at, stop) - closing
            else:
                for number, place in _BRACES.find(text, at, stop):
                    depth += -1 if number else 1
                    self.braces += 1
                    if depth == 0:
                        return place
            at, step = stop, min(step * 2, _STEP)
        return None

    def _directive(self, piece: bytes, body: bytes | None) -> None:
        at = 0
        while match := _HEADER.match(piece, at):
            version, target, address = match.groups()
            if version is not None and not self.version:
                self.version = version.decode()
            elif target is not None and not self.target:
                words = [word.strip().decode() for word in target.split(b",")]
                self.target, self.options = words[0], tuple(words[1:])
            elif address is not None and self.address_size is None:
                self.address_size = int(address[:9])
            at = match.end()
        piece = piece[at:].strip()
        if not piece:
            return
        if match := _FUNCTION.search(piece):
            self._function(piece, match, body)
        else:
            self._variable(piece, body)

    def _function(self, piece: bytes, match: re.Match[bytes], body: bytes | None) -> None:
        linking = _WORD.findall(piece[: match.start()])
        rest = piece[match.end() :].lstrip()
        at = 0
        while attribute := _ATTRIBUTE.match(rest, at):
            linking += _WORD.findall(attribute.group()[:64])
            at = attribute.end()
        rest = rest[at:]
        parameters = b""
        if rest[:1] == b"(":
            parameters, _, rest = rest.partition(b")")
        name = _NAME.search(rest)
        if name is None:
            self.problems.append(Problem("", "PTX function without a name", None, True))
            return
        rest = rest[name.end() :].lstrip()
        if rest[:1] == b"(":
            more, _, rest = rest.partition(b")")
            parameters += more
        words = [*linking, match.group(), *_WORD.findall(rest)]
        traits = []
        if b".ptr" in parameters:
            words.append(b".ptr")
            if re.search(rb"\.ptr\s+\.(?!global|align)", parameters):
                traits.append("ptr-space")
        function = PtxFunction(
            name=name.group().decode("utf-8", "replace"),
            kernel=match.group(1) == b"entry",
            body=body is not None,
            attributes=tuple(word.decode() for word in dict.fromkeys(words)),
            traits=tuple(traits),
            size=len(body or b""),
        )
        if body is not None:
            self.bodies.append((len(self.functions), body))
        self.functions.append(function)

    def _variable(self, piece: bytes, body: bytes | None) -> None:
        declaration, equals, value = piece.partition(b"=")
        words = _WORD.findall(declaration)
        value += body or b""
        names = _NAME.findall(_WORD.sub(b" ", declaration))
        name = names[0].decode("utf-8", "replace") if names else ""
        if b".shared" in words and b".extern" in words:
            self.extern_shared = True
        if b".texref" in words:
            self.textures.append(name)
        if b".surfref" in words:
            self.surfaces.append(name)
        plain = not equals or (re.search(rb"[(+*/]", value) is None and b"][" not in declaration.replace(b" ", b""))
        # Types say nothing that a release refuses; without them and the names most variables come to the same few.
        words = [word for word in words if not re.fullmatch(rb"\.(?:[busf]|bf)\d+(?:x2)?|\.align", word)]
        directive = PtxDirective(
            tuple(word.decode() for word in words),
            "" if plain and words and _PLAIN_WORDS.issuperset(words) else name,
            "none" if not equals else "plain" if plain else "expression",
        )
        if len(self.directives) < MAX_DISTINCT:
            self.directives[directive] = None

    def _second_look(self) -> None:
        """Bodies, once all names of the module are known."""
        names = {function.name for function in self.functions}
        named_ones = dict.fromkeys(directive.name for directive in self.directives if directive.name)
        special = {name: number for number, name in enumerate(named_ones)}
        pointers = any(not function.kernel for function in self.functions)
        two = b"|" in self.text
        barriers, shared, inner = (name in self.features for name in ("barrier", "shared", "inner"))
        for index, body in self.bodies:
            function = self.functions[index]
            traits = list(function.traits)
            numbers = self._numbers(body)
            if inner:
                numbers += tuple(
                    self.statements.setdefault(word, len(self.statements))
                    for word in dict.fromkeys(_INNER.findall(body))
                )
            calls: dict[str, None] = {}
            if not self.calling.isdisjoint(numbers):
                calls = dict.fromkeys(target.decode("utf-8", "replace") for target in _CALL.findall(body))
            if any(target[0] == "%" for target in calls):
                traits.append("indirect-call")
            if pointers and not names.isdisjoint(x.decode("utf-8", "replace") for x in _ADDRESS.findall(body)):
                traits.append("function-pointer")
            if two and b"|" in body and _SETP_TWO.search(body):
                traits.append("setp-two-destinations")
            if barriers and _BAR_COUNT.search(body):
                traits.append("bar-red-thread-count")
            uses: tuple[str, ...] = ()
            if special:
                named = {name.decode("utf-8", "replace") for name in _NAME.findall(body)}
                uses = tuple(sorted((name for name in named if name in special), key=special.__getitem__))
            self.functions[index] = PtxFunction(
                name=function.name,
                kernel=function.kernel,
                statements=numbers,
                registers=_registers(body),
                calls=tuple(target for target in calls if target[0] != "%"),
                traits=tuple(traits),
                attributes=function.attributes,
                uses=uses,
                size=function.size,
                shared=_shared(body) if shared else 0,
            )

    def _numbers(self, body: bytes) -> tuple[int, ...]:
        """Indices of the distinct statements of a body, in order; new ones go into the table."""
        table = self.statements
        ends = body.replace(b"::", _DOUBLE) if "double colon" in self.features else body
        found = dict.fromkeys(_STATEMENT.findall(b";" + ends.translate(_ENDS)))
        new = [statement for statement in found if statement not in table]
        if any(b"." not in statement and statement not in _PLAIN for statement in new):
            exact = _EXACT.findall(b";" + body)
            found = dict.fromkeys(b"".join(x.split()).replace(b"::", _DOUBLE) for x in exact)
            new = [statement for statement in found if statement not in table]
        for statement in new:
            if statement[:4] == b"call":
                self.calling.add(len(table))
            table[statement] = len(table)
        return tuple(table[statement] for statement in found)


# Opcodes that may stand without a modifier.
_PLAIN = {b"ret", b"exit", b"trap", b"brkpt", b"bra", b"call", b"mov"}


def _dotted(statement: bytes) -> str:
    return statement.replace(_DOUBLE, b"::").decode("utf-8", "replace")


def _registers(body: bytes) -> tuple[str, ...]:
    starts = (at for _, at in _SPECIAL_STARTS.find(body, 0, len(body)))
    found = (match.group() for at in starts if (match := _SPECIAL.match(body, at)))
    return tuple(name.decode() for name in dict.fromkeys(found))


def _shared(body: bytes) -> int:
    total = 0
    for vector, _, bits, dimensions in _SHARED.findall(body):
        size = int(bits) // 8 * int(vector or 1)
        for dimension in re.findall(rb"\d+", dimensions)[:8]:
            size *= int(dimension[:12])
        total += size
    return total
