"""Bring a report into its one order, so that the same facts always give the same bytes."""

from __future__ import annotations

import re
from typing import TypeVar

import msgspec

from zcheck.model.report import Applications, DeviceCodeReport, FunctionReport, Report
from zcheck.render.safe import map_strings

T = TypeVar("T")
_SURROGATE = re.compile("[\ud800-\udfff]")


def normal(product: Report | Applications) -> Report | Applications:
    """``product`` with every list sorted whose order has no meaning; stacks, findings, actions keep theirs.

    Lone surrogates (names of files that were no valid UTF-8) become ``\\udc80`` style escapes, since no format can
    carry them.
    """
    product = whole_strings(product)  # first, since it may change the order
    if isinstance(product, Report):
        return _report(product)
    return msgspec.structs.replace(
        product,
        applications=tuple(_report(report) for report in product.applications),
        skipped=tuple(sorted(product.skipped, key=lambda s: (s.path, s.reason))),
    )


def whole_strings(product: T) -> T:
    """``product`` without lone surrogates."""
    try:
        msgspec.json.encode(product)  # far quicker than looking at each string, and almost always right
        return product
    except UnicodeEncodeError:
        return map_strings(product, _whole)


def _whole(text: str) -> str:
    return _SURROGATE.sub(lambda m: f"\\u{ord(m.group()):04x}", text) if not text.isascii() else text


def _report(report: Report) -> Report:
    return msgspec.structs.replace(
        report,
        modules=tuple(sorted(report.modules, key=lambda m: (m.name.lower(), m.name, m.path or ""))),
        edges=tuple(sorted(report.edges, key=lambda e: (e.source, e.target, e.kind, e.place, e.functions))),
        functions=tuple(
            _function(f) for f in sorted(report.functions, key=lambda f: (f.library, f.name, f.kind, f.users))
        ),
        device_code=tuple(_device(d) for d in sorted(report.device_code, key=lambda d: (d.module, d.section))),
        skipped=tuple(sorted(report.skipped, key=lambda s: (s.path, s.reason))),
        frameworks=tuple(sorted(report.frameworks)),
    )


def _device(code: DeviceCodeReport) -> DeviceCodeReport:
    return msgspec.structs.replace(code, replay=dict(sorted(code.replay.items())))


def _function(function: FunctionReport) -> FunctionReport:
    return msgspec.structs.replace(
        function, users=tuple(sorted(function.users)), families=tuple(sorted(function.families))
    )
