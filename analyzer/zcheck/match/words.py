"""The closed vocabularies that a rule's values are checked against: a word outside of them would never match."""

from __future__ import annotations

from functools import lru_cache
from typing import get_args

from zcheck.match.predicates_facts import DeviceCodePredicate, ModulePredicate, RunPredicate, StackPredicate
from zcheck.match.predicates_uses import FunctionPredicate, LibraryPredicate
from zcheck.model.base import Record
from zcheck.model.evidence import Role, UseKind
from zcheck.model.facts import Machine
from zcheck.model.finding import REACHES
from zcheck.model.graph import LoadTime
from zcheck.model.stack import LaunchMode, Provision, State

_COUNTS = ("containers", "ptx", "sass", "kernels", "loadable", "dropped", "stub", "empty", "lost", "opaque")


@lru_cache(maxsize=32)
def closed_words(predicate: type[Record]) -> dict[str, tuple[str, ...]]:
    """Field of a predicate to the words it knows; fields of free text (names, companies, host keys) are not there."""
    use: dict[str, tuple[str, ...]] = {
        "kind": get_args(UseKind),
        "reach": tuple(REACHES),
        "role": get_args(Role),
        "load": get_args(LoadTime),
    }
    found = ("bundle", "system", "missing", "mismatch")
    provision = get_args(Provision)
    known: dict[type[Record], dict[str, tuple[str, ...]]] = {
        FunctionPredicate: {**use, "state": get_args(State), "provision": provision},
        LibraryPredicate: {**use, "found": found, "provision": tuple(dict.fromkeys((*provision, *found)))},
        ModulePredicate: {"role": use["role"], "load": use["load"], "machine": get_args(Machine)},
        DeviceCodePredicate: {"has": _COUNTS, "lacks": _COUNTS},
        RunPredicate: {"outcome": ("passed", "failed")},
        StackPredicate: {"launch_mode": get_args(LaunchMode)},
    }
    return known.get(predicate, {})
