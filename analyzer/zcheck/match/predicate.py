"""What predicates are made of: their matches, and how a rule's values compare."""

from __future__ import annotations

from dataclasses import dataclass, field

from zcheck.model.base import Confidence, Record
from zcheck.model.evidence import Item
from zcheck.model.finding import Reach

# A family of DLLs under one word in rules: the table's own ids on the right.
LIBRARY_GROUPS: dict[str, tuple[str, ...]] = {"cudnn": ("cudnn", "cudnn8", "cudnn9")}


@dataclass(frozen=True)
class Match:
    """What one predicate found, and what it binds for the message."""

    reach: Reach = "use"
    module: str | None = None
    library: str | None = None
    functions: tuple[str, ...] = ()
    evidence: tuple[Item, ...] = ()
    confidence: Confidence = "high"
    bound: dict[str, str] = field(default_factory=dict)


class Strict(Record, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    pass


OneOrMore = str | list[str]


def wanted(value: OneOrMore | None) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


def fits(value: OneOrMore | None, actual: str | None) -> bool:
    return value is None or (actual is not None and actual in wanted(value))


def libraries(value: OneOrMore | None) -> tuple[str, ...]:
    return tuple(name for word in wanted(value) for name in LIBRARY_GROUPS.get(word, (word,)))
