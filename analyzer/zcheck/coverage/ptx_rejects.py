"""What a release parses and then refuses: conditions of the parser, and of the passes behind it.

The keys are those of the coverage tables (zluda/ptx_rejects.csv), read off vosen/ZLUDA's ptx_parser/src/lib.rs
(``state.errors.push``) and ptx/src/pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from zcheck.coverage.ptx_match import modifiers
from zcheck.model.device_code import LaterReject, PtxFunction, PtxReject

_CONDITIONS: dict[str, Callable[[tuple[str, ...]], bool]] = {
    "level_eviction_priority": lambda words: any(w.startswith((".L1::evict", ".L1::no_allocate")) for w in words),
    "level_cache_hint": lambda words: ".L2::cache_hint" in words,
    # The operand comes with the modifier.
    "cache_policy": lambda words: ".L2::cache_hint" in words,
    "level_prefetch_size": lambda words: any(re.fullmatch(r"\.L2::\d+B", w) for w in words),
    "unified": lambda words: ".unified" in words,
    "relu": lambda words: ".relu" in words,
    "satfinite": lambda words: ".satfinite" in words,
    # refused only together with an eviction priority, which is refused anyway
    "cop": lambda words: False,
    # cvta on 32-bit addresses
    "size": lambda words: ".u32" in words,
    # v5's mma takes the names of .f16 accumulators and refuses them
    "ctype": lambda words: words[-1:] == (".f16",),
    "dtype": lambda words: words[-4:-3] == (".f16",),
    # cp.async with another size than 4, 8 or 16: no compiler writes it
    "operand check": lambda words: False,
}


def conditions() -> frozenset[str]:
    """All conditions that are understood."""
    return frozenset(_CONDITIONS)


def refused(statement: str, form: str, rejects: tuple[PtxReject, ...]) -> bool:
    """Whether the parser refuses the statement although the form takes it."""
    words = modifiers(statement)
    for reject in rejects:
        if reject.form == form:
            known = [_CONDITIONS[when] for when in reject.when if when in _CONDITIONS]
            if not reject.when or any(condition(words) for condition in known):
                return True
    return False


def _opcode(*names: str) -> Callable[[str], bool]:
    return lambda statement: statement.partition(".")[0] in names


_MEMORY = _opcode("ld", "st", "atom", "cvta", "red")
Check = Callable[[bool, str], bool]
"""(whether it stands in a kernel, statement)"""
_BY_STATEMENT: dict[str, Check] = {
    "min .NaN": lambda kernel, s: s.startswith("min.") and ".NaN" in s,
    "max .NaN": lambda kernel, s: s.startswith("max.") and ".NaN" in s,
    "mad.hi.sat.s32": lambda kernel, s: s == "mad.hi.sat.s32",
    "ldmatrix .m16n16": lambda kernel, s: s.startswith("ldmatrix.") and ".m16n16" in s,
    "ldmatrix .x1": lambda kernel, s: s.startswith("ldmatrix.") and ".x1" in modifiers(s),
    "ldmatrix .b8": lambda kernel, s: s.startswith("ldmatrix.") and ".b8" in modifiers(s),
    "dp4a mixed signedness": lambda kernel, s: s.startswith("dp4a.") and len(set(modifiers(s))) > 1,
    "vshr .wrap": lambda kernel, s: s.startswith("vshr.") and ".wrap" in modifiers(s),
    "exit outside a kernel": lambda kernel, s: s == "exit" and not kernel,
    ".cluster scope": lambda kernel, s: ".cluster" in modifiers(s),
    ".shared::cta .shared::cluster .param::func in ld/st/atom/cvta": lambda kernel, s: (
        _MEMORY(s) and not {".shared::cta", ".shared::cluster", ".param::func"}.isdisjoint(modifiers(s))
    ),
}
_BY_TRAIT: dict[str, tuple[str, ...]] = {
    "bar.red with thread count": ("bar-red-thread-count",),
    "setp with two destinations": ("setp-two-destinations",),
    "function pointers": ("function-pointer", "indirect-call"),
}
LATER = frozenset(_BY_STATEMENT) | frozenset(_BY_TRAIT)
"""what later passes refuse, as the coverage tables call it"""


def later_statement(statement: str, rejects: tuple[LaterReject, ...], kernel: bool) -> str | None:
    """Why a later pass refuses the statement, in a kernel or in another function; None when none does."""
    for reject in rejects:
        check = _BY_STATEMENT.get(reject.what)
        if check is not None and check(kernel, statement):
            return reject.what
    return None


def later_trait(what: str, function: PtxFunction) -> bool:
    """Whether a later pass refuses an operand form of the function for the reason ``what``."""
    return not set(_BY_TRAIT.get(what, ())).isdisjoint(function.traits)
