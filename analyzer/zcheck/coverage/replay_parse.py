"""What a release makes of one PTX text: unread, functions dropped, or a load that fails.

Followed are the parser (vosen/ZLUDA ptx_parser/src/lib.rs: what empties the module, what drops one function, what is
parsed and refused) and the passes behind it (ptx/src/pass: what makes the whole load fail).
"""

from __future__ import annotations

import msgspec

from zcheck.coverage.ptx_match import Matcher
from zcheck.coverage.ptx_rejects import later_statement, later_trait, refused
from zcheck.model.base import Record
from zcheck.model.device_code import PtxDirective, PtxFunction, PtxModule, ReleasePtx

# Functions that ZLUDA brings along (ptx/src/pass/replace_known_functions.rs).
PROVIDED = frozenset({"vprintf", "__assertfail"})
# Words that begin a directive for the parser's recovery: it drops one word, then everything up to one of these; when
# the second word is one already it gives up and the module is empty (ptx_parser/src/lib.rs, ``directive``).
_STARTERS = frozenset({
    ".extern", ".visible", ".weak", ".func", ".entry", ".global", ".const", ".shared", ".file", ".section",
})  # fmt: skip


MAX_KEPT = 100_000
"""answers that a judge keeps; programs have some thousands of distinct statements"""


class ModuleOutcome(Record, frozen=True):
    """What a release makes of one PTX text.

    ``unread``: why the text as a whole is not parsed; ``dropped``: function → (reason, statement); ``load_fails``: why
    the translation of what was parsed fails; ``invalid`` counts directives that the parser could not take.
    """

    unread: str | None = None
    load_fails: str | None = None
    lost: str | None = None
    """why nothing of it can be relied on although it loads"""
    invalid: int = 0
    dropped: dict[str, tuple[str, str]] = msgspec.field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Judge:
    """What a release says of single statements; answers are kept, as programs have few distinct ones."""

    def __init__(self, release: ReleasePtx) -> None:
        self.release = release
        self._matcher = Matcher(release.forms, release.any_order)
        self._problems: dict[str, str | None] = {}
        self._later: tuple[dict[str, str | None], dict[str, str | None]] = ({}, {})

    def problem(self, statement: str) -> str | None:
        """Why the parser does not take the statement; None when it does."""
        if statement not in self._problems:
            if len(self._problems) >= MAX_KEPT:
                self._problems.clear()
            self._problems[statement] = self._problem(statement)
        return self._problems[statement]

    def later(self, statement: str, kernel: bool) -> str | None:
        """Why a later pass refuses the statement, in a kernel or in another function; None when none does."""
        kept = self._later[kernel]
        if statement not in kept:
            if len(kept) >= MAX_KEPT:
                kept.clear()
            kept[statement] = later_statement(statement, self.release.later, kernel)
        return kept[statement]

    def _problem(self, statement: str) -> str | None:
        if statement.startswith("."):
            return None if statement in self.release.directives else f"unknown statement {statement}"
        form = self._matcher.match(statement)
        if form is None:
            kind = "form of a known instruction" if self._matcher.opcode_known(statement) else "instruction"
            return f"unknown {kind} {statement}"
        if refused(statement, form, self.release.rejects):
            return f"{statement} is parsed and refused"
        return None


def parse_outcome(ptx: PtxModule, judge: Judge) -> ModuleOutcome:
    """What the judge's release makes of one PTX text."""
    release = judge.release
    unread = _unread(ptx, release)
    if unread:
        unknown = [s for s in ptx.statements if judge.problem(s)]
        # What would go besides, were the text read: it tells the reader whether mending the text alone would help.
        also = (f"besides, unknown to the release: {', '.join(unknown[:8])}",) if unknown else ()
        return ModuleOutcome(unread=unread, notes=also)
    invalid = 0
    lacking: dict[str, str] = {}
    for directive in ptx.directives:
        why = _directive_problem(directive, release)
        second = directive.words[1] if len(directive.words) > 1 else ""
        if why and (second in _STARTERS or not release.any_order):
            return ModuleOutcome(unread=f"{why}, which the parser does not recover from")
        if why:
            invalid += 1
            if directive.name:
                lacking[directive.name] = why
    verdicts = [judge.problem(statement) for statement in ptx.statements]
    dropped: dict[str, tuple[str, str]] = {}
    declared: set[str] = set()
    bodies = {function.name for function in ptx.functions if function.body}
    kept: list[PtxFunction] = []
    for function in ptx.functions:
        header = _header_problem(function, release)
        if header:
            second = function.attributes[1] if len(function.attributes) > 1 else ""
            if second in _STARTERS or not release.any_order:
                return ModuleOutcome(
                    unread=f"{header}, which the parser does not recover from", notes=(f"first in {function.name}",)
                )
            dropped[function.name] = (header, "")
            invalid += 1
            continue
        problem = _body_problem(function, ptx, release, verdicts, declared)
        declared.add(function.name)
        if problem is None:
            kept.append(function)
            continue
        if release.unknown_statement != "function-dropped":
            first = (f"first in {function.name}",)
            if release.unknown_statement == "load-fails":
                return ModuleOutcome(load_fails=problem[0], invalid=1, notes=first)
            if release.selection == "highest-sm":
                return ModuleOutcome(unread=problem[0], notes=first)
        dropped[function.name] = problem
        invalid += 1
    load_fails, notes = _translation(ptx, judge, kept, dropped, lacking, bodies)
    lost = None
    if ptx.address_size is None and release.address_size_default == 32:
        lost = "there is no .address_size: the code is taken as 32-bit"
    return ModuleOutcome(load_fails=load_fails, lost=lost, invalid=invalid, dropped=dropped, notes=notes)


def _unread(ptx: PtxModule, release: ReleasePtx) -> str | None:
    """Why the text is not parsed at all."""
    if ptx.stray and (release.any_order or ptx.stray != "a lone _"):
        return f"{ptx.stray} is no token for the lexer"
    if not ptx.header_ok:
        return "the text does not begin with .version and .target"
    if not release.target_suffix and ptx.target[-1:].isalpha():
        return f"the target {ptx.target} is not parsed, letters are not"
    for option in ptx.options:
        if option not in release.target_options:
            return f"the target option {option} is not parsed"
    return None


def _directive_problem(directive: PtxDirective, release: ReleasePtx) -> str | None:
    for word in directive.words:
        if word not in release.directives and word not in (".v2", ".v4", ".v8") and not _is_type(word):
            return f"the directive {word}"
    if directive.initialiser == "expression":
        return f"the initialiser of {directive.name or 'a variable'}"
    return None if directive.words else "an unknown directive"


def _is_type(word: str) -> bool:
    return word == ".pred" or (word[1:2] in "bufs" and word[2:].replace("x2", "").isdigit()) or word.startswith(".bf16")


def _header_problem(function: PtxFunction, release: ReleasePtx) -> str | None:
    for word in function.attributes:
        if word not in release.directives:
            return f"the directive {word} in its header"
    if "ptr-space" in function.traits:
        return "a .ptr parameter with another state space than .global"
    return None


def _body_problem(
    function: PtxFunction,
    ptx: PtxModule,
    release: ReleasePtx,
    verdicts: list[str | None],
    declared: set[str],
) -> tuple[str, str] | None:
    """Why the parser drops the function, and the first statement to blame."""
    if not function.body:
        return None
    for number in function.statements:
        why = verdicts[number]
        if why is not None:
            return why, ptx.statements[number]
    for register in function.registers:
        if register in release.refused_registers:
            return f"special register {register} is refused", register
    if release.any_order:
        for target in function.calls:
            if target not in declared:
                return f"calls {target}, which is not declared before it", f"call {target}"
        if "indirect-call" in function.traits:
            return "makes an indirect call", "call"
    return None


def _translation(
    ptx: PtxModule,
    judge: Judge,
    kept: list[PtxFunction],
    dropped: dict[str, tuple[str, str]],
    lacking: dict[str, str],
    bodies: set[str],
) -> tuple[str | None, tuple[str, ...]]:
    """Why the passes behind the parser fail on the functions that were kept, and notes on what is left open."""
    release = judge.release
    registers = set(release.registers)
    external: dict[str, None] = {}
    # Most statements are refused by nothing: those of a module that are, once, for kernels and for other functions.
    later = tuple(
        {number: why for number, one in enumerate(ptx.statements) if (why := judge.later(one, kernel))}
        for kernel in (False, True)
    )
    for function in kept:
        for register in function.registers:
            if register not in registers:
                return f"reads {register}, which the release does not know", (f"first in {function.name}",)
        for target in function.calls:
            if target in dropped:
                return f"calls {target}, which was dropped: {dropped[target][0]}", (f"first in {function.name}",)
            if target not in bodies and target not in PROVIDED:
                external[target] = None
        for name in function.uses:
            if name in lacking:
                return f"uses {name}, which was not read: {lacking[name]}", (f"first in {function.name}",)
        for reject in release.later:
            if later_trait(reject.what, function):
                return reject.what, (f"first in {function.name}",)
        bad = later[function.kernel]
        for number in function.statements if bad else ():
            if number in bad:
                return f"{ptx.statements[number]} ({bad[number]})", (f"first in {function.name}",)
    notes = tuple(f"calls {name}, which this PTX declares and does not define" for name in list(external)[:8])
    return None, notes
