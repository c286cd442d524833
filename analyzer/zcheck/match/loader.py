"""Read rule files: YAML with every key checked, and a hint where one is misspelt."""

from __future__ import annotations

import difflib
import re
import stat
import string
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
import yaml

from zcheck.errors import DataError
from zcheck.match.condition import PREDICATES, Condition
from zcheck.match.predicate import wanted
from zcheck.match.rule import Example, Rule
from zcheck.match.words import closed_words
from zcheck.model.evidence import Evidence, FileFact, Use, parse_line
from zcheck.model.finding import SEVERITIES
from zcheck.model.report import WORKLOADS
from zcheck.model.stack import Stack

_REQUIRED = ("id", "title", "area", "severity", "when", "explain", "fix", "examples")
_KEYS = (*_REQUIRED, "refs", "confidence", "limitation", "first")
_ID = re.compile(r"[A-Z0-9]+(-[A-Z0-9]+)+")
# Words that messages may name; kept here so that a misspelt one is refused instead of printed as nothing.
WORDS = frozenset(
    """module library functions count release hip_sdk gpu dll file limit state hip because since machine version company
    kernels loadable dropped stub empty lost ptx_bytes containers note framework cuda api modules text kind key value
    subject component workload by why date app path newer newer_has
    ptx_mb""".split()  # noqa: SIM905
)
_NEEDS = ("required", "optional", "not seen", "unknown")
_STACK = re.compile(r"\s*(zluda|hip_sdk|gpu|launch_mode)\s+(\S+)\s*$")


# libyaml's parser where PyYAML has it: a tenth of the time over all rules.
_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


_LARGEST = 1024 * 1024
"""bytes of a rule file; the largest of zcheck's own has 9 KB"""


class _Loader(_Base):  # type: ignore[misc]
    """Safe YAML that refuses a key given twice (PyYAML keeps the last silently)."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[object] = set()
        for key_node, _ in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise DataError(f"{self.name}: a key must be a word (line {key_node.start_mark.line + 1})")
            key = self.construct_object(key_node, deep=True)
            if key in seen:
                raise DataError(f"{self.name}: key {key!r} is given twice (line {key_node.start_mark.line + 1})")
            seen.add(key)
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


def load_rules(folder: Path, examples: bool = True) -> tuple[Rule, ...]:
    """All rules below ``folder`` in the order of their ids; raises DataError naming the file, key and likely mend.

    Without ``examples`` these are neither read nor checked, which a check of a program has no use for.
    """
    paths = sorted(folder.rglob("*.yaml"))
    if not paths:
        raise DataError(f"{folder}: no rule files (*.yaml) there")
    rules = [read_rule(path, examples) for path in paths]
    seen: dict[str, str] = {}
    for rule in rules:
        if rule.id in seen:
            raise DataError(f"{rule.path}: id {rule.id} is taken by {seen[rule.id]}")
        seen[rule.id] = rule.path
    return tuple(sorted(rules, key=lambda rule: rule.id))


def read_rule(path: Path, examples: bool = True) -> Rule:
    """The rule of one file; raises DataError."""
    try:
        text = _rule_text(path)
        loader = _Loader(text)
        loader.name = path.name
        try:
            data = loader.get_single_data()
        finally:
            loader.dispose()
    except (OSError, ValueError, TypeError, OverflowError, yaml.YAMLError) as error:
        # ValueError: not UTF-8, or a date or number that is none
        raise DataError(f"{path.name}: {' '.join(str(error).split())}") from None
    return parse_rule(data, path.name, examples)


def _rule_text(path: Path) -> str:
    """The text of a rule file. Aliases are refused: no rule needs one, and a few lines of them stand for millions, or
    for themselves."""
    state = path.stat()
    if not stat.S_ISREG(state.st_mode):
        raise DataError(f"{path.name}: is no regular file")
    if state.st_size > _LARGEST:
        raise DataError(f"{path.name}: is larger than {_LARGEST >> 20} MiB, so no rule")
    text = path.read_text(encoding="utf-8")
    if "*" in text:
        for event in yaml.parse(text, Loader=_Base):
            if isinstance(event, yaml.AliasEvent):
                raise DataError(f"{path.name}: a rule may hold no alias (*{event.anchor})")
    return text


def parse_rule(data: object, where: str, with_examples: bool = True) -> Rule:
    """The rule that ``data`` (parsed YAML) describes; ``where`` names the file in errors."""
    rule = _mapping(data, where, "the file")
    _only(rule, _KEYS, where, "a rule")
    for key in _REQUIRED:
        if key not in rule:
            raise DataError(f"{where}: the rule has no {key}")
    identifier = _text(rule["id"], where, "id")
    if not _ID.fullmatch(identifier):
        raise DataError(f"{where}: id {identifier!r} is not of the form AREA-WORD-WORD in capitals")
    severity = _choice(rule["severity"], SEVERITIES, where, "severity")
    explain = _text(rule["explain"], where, "explain")
    fix = tuple(_text(item, where, "fix") for item in _items(rule["fix"], where, "fix"))
    for text in (explain, *fix):
        _check_words(text, where)
    given = _items(rule["examples"], where, "examples") if with_examples else []
    examples = tuple(_example(item, where) for item in given)
    if with_examples and {example.expect_match for example in examples} != {True, False}:
        raise DataError(f"{where}: a rule needs at least one example that matches and one that does not")
    return Rule(
        id=identifier,
        title=_text(rule["title"], where, "title"),
        area=_text(rule["area"], where, "area"),
        severity=severity,  # type: ignore[arg-type]
        when=_condition(rule["when"], where, "when"),
        explain=explain,
        fix=fix,
        refs=tuple(_text(item, where, "refs") for item in _items(rule.get("refs", []), where, "refs")),
        examples=examples,
        confidence=_choice(rule.get("confidence", "high"), ("high", "medium", "low"), where, "confidence"),  # type: ignore[arg-type]
        limitation=_flag(rule.get("limitation", False), where, "limitation"),
        first=_flag(rule.get("first", False), where, "first"),
        path=where,
    )


def _condition(data: object, where: str, at: str) -> Condition:
    node = _mapping(data, where, at)
    if len(node) != 1:
        raise DataError(f"{where}: {at} must hold exactly one of all, any, not or a predicate, not {len(node)} keys")
    key, value = next(iter(node.items()))
    if key in ("all", "any"):
        parts = tuple(_condition(item, where, f"{at}.{key}") for item in _items(value, where, f"{at}.{key}"))
        if not parts:
            raise DataError(f"{where}: {at}.{key} is empty")
        return Condition(op=key, parts=parts)  # type: ignore[arg-type]
    if key == "not":
        return Condition(op="not", parts=(_condition(value, where, f"{at}.not"),))
    if key == "workload":
        needs = _mapping(value, where, f"{at}.workload")
        _only(needs, WORKLOADS, where, f"{at}.workload")
        if not needs:
            raise DataError(f"{where}: {at}.workload names no family")
        pairs = []
        for family, need in needs.items():
            words = need if isinstance(need, list) else [need]
            pairs.append((family, tuple(_choice(word, _NEEDS, where, f"workload {family}") for word in words)))
        return Condition(op="workload", workload=tuple(pairs))
    if key not in PREDICATES:
        raise DataError(
            f"{where}: {at}: no predicate {key!r}{_near(str(key), (*PREDICATES, 'workload', 'all', 'any', 'not'))}"
        )
    struct = PREDICATES[key]
    fields = _mapping(value, where, f"{at}.{key}")
    _only(fields, [field.name for field in msgspec.structs.fields(struct)], where, f"{at}.{key}")
    try:
        predicate = msgspec.convert(fields, struct)
    except msgspec.ValidationError as error:
        raise DataError(f"{where}: {at}.{key}: {error}") from None
    for field, known in closed_words(struct).items():
        for word in wanted(getattr(predicate, field)):
            _choice(word, known, where, f"{at}.{key}.{field}")
    return Condition(op="predicate", predicate=predicate)  # type: ignore[arg-type]


def parse_given(text: str, where: str) -> tuple[Evidence, Stack]:
    """Evidence and stack of a ``given`` block (or a pasted list of lines); raises DataError.

    The entry is the first ``entry`` line's module, or the first ``file … role entry``.
    """
    items = []
    stack = Stack()
    for raw in text.splitlines():
        content = raw.strip()
        if not content or content.startswith("#"):
            continue
        if content.startswith("stack "):
            stack = parse_stack(content[len("stack ") :], where)
            continue
        try:
            items.append(parse_line(content))
        except DataError as error:
            raise DataError(f"{where}: {error.message}") from None
    target = next(
        (item.module for item in items if isinstance(item, Use) and item.role == "entry"),
        next((item.name for item in items if isinstance(item, FileFact) and item.role == "entry"), "app.exe"),
    )
    return Evidence(target=target, items=tuple(items)), stack


def parse_stack(text: str, where: str) -> Stack:
    """``zluda v6, hip_sdk 6.4, gpu gfx1100, launch_mode staged`` as a Stack; raises DataError."""
    values: dict[str, str] = {}
    for part in text.split(","):
        found = _STACK.match(part)
        if not found:
            raise DataError(f"{where}: stack: cannot read {part.strip()!r}; write 'zluda v6, hip_sdk 6.4, gpu gfx1100'")
        values[found[1]] = found[2]
    try:
        return msgspec.convert(values, Stack)
    except msgspec.ValidationError as error:
        raise DataError(f"{where}: stack: {error}") from None


def _example(data: object, where: str) -> Example:
    example = _mapping(data, where, "an example")
    _only(example, ("name", "given", "expect"), where, "an example")
    for key in ("name", "given", "expect"):
        if key not in example:
            raise DataError(f"{where}: an example has no {key}")
    name = _text(example["name"], where, "name")
    evidence, stack = parse_given(_text(example["given"], where, f"given of {name!r}"), f"{where}, example {name!r}")
    expect = _choice(example["expect"], ("match", "no-match"), where, "expect")
    return Example(name=name, evidence=evidence, stack=stack, expect_match=expect == "match")


def _check_words(text: str, where: str) -> None:
    try:
        used = [(name, form, how) for _, name, form, how in string.Formatter().parse(text) if name is not None]
    except ValueError as error:
        raise DataError(f"{where}: {error} in {text!r}") from None
    for name, form, how in used:
        if form or how:
            raise DataError(f"{where}: messages take {{{name}}} as it is, without a format")
        if name not in WORDS:
            raise DataError(f"{where}: messages know no {{{name}}}{_near(name, WORDS)}")


def _mapping(data: object, where: str, what: str) -> dict[str, Any]:
    if not isinstance(data, dict) or not all(isinstance(key, str) for key in data):
        raise DataError(f"{where}: {what} must be a mapping of names")
    return data


def _items(data: object, where: str, what: str) -> list[Any]:
    if not isinstance(data, list):
        raise DataError(f"{where}: {what} must be a list")
    return data


def _text(data: object, where: str, what: str) -> str:
    if not isinstance(data, str) or not data.strip():
        raise DataError(f"{where}: {what} must be text, not {data!r}")
    return data


def _flag(data: object, where: str, what: str) -> bool:
    if not isinstance(data, bool):
        raise DataError(f"{where}: {what} must be true or false, not {data!r}")
    return data


def _choice(data: object, known: Iterable[str], where: str, what: str) -> str:
    options = tuple(known)
    if data not in options:
        raise DataError(f"{where}: {what} {data!r} is unknown{_near(str(data), options)}")
    return str(data)


def _only(data: dict[str, Any], known: Iterable[str], where: str, what: str) -> None:
    options = tuple(known)
    for key in data:
        if key not in options:
            raise DataError(f"{where}: {what} has no key {key!r}{_near(key, options)}")


def _near(word: str, known: Iterable[str]) -> str:
    options = sorted(known)
    near = difflib.get_close_matches(word, options, 1)
    return f"; did you mean {near[0]!r}?" if near else f"; it knows {', '.join(options)}"
