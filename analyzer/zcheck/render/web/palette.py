"""Colours of the HTML pages, light and dark, and which stand on which (the tests compute WCAG 2 contrast for these)."""

from __future__ import annotations

LIGHT = {
    "bg": "#ffffff",
    "panel": "#f4f6f9",
    "fg": "#1b2330",
    "muted": "#525d6b",
    "line": "#cfd6df",
    "edge": "#707b89",
    "link": "#0b57d0",
    "bad": "#a61b12",
    "bad-bg": "#fde8e6",
    "warn": "#774800",
    "warn-bg": "#fdf0d3",
    "ok": "#0e6637",
    "ok-bg": "#dff4e8",
    "info": "#14499c",
    "info-bg": "#e3edfd",
    "dim": "#4a5460",
    "dim-bg": "#e8ecf1",
    "odd": "#6a2e9f",
    "odd-bg": "#f2e8fb",
}
DARK = {
    "bg": "#12161c",
    "panel": "#1a2029",
    "fg": "#e6ebf2",
    "muted": "#a7b2c0",
    "line": "#364150",
    "edge": "#8290a1",
    "link": "#8ab8ff",
    "bad": "#ffa198",
    "bad-bg": "#421916",
    "warn": "#f2c66e",
    "warn-bg": "#3a2b0e",
    "ok": "#83dda9",
    "ok-bg": "#123422",
    "info": "#a0c5ff",
    "info-bg": "#172b4e",
    "dim": "#bac4d0",
    "dim-bg": "#27303b",
    "odd": "#d6b5f6",
    "odd-bg": "#301d45",
}
STATES = ("bad", "warn", "ok", "info", "dim", "odd")
# (foreground, background, least ratio): 4.5 for text (WCAG 1.4.3), 3 for borders and lines that carry meaning (1.4.11).
PAIRS: tuple[tuple[str, str, float], ...] = (
    *((text, ground, 4.5) for text in ("fg", "muted", "link") for ground in ("bg", "panel")),
    *((state, f"{state}-bg", 4.5) for state in STATES),
    *(("fg", f"{state}-bg", 4.5) for state in STATES),
    *((state, ground, 3.0) for state in STATES for ground in ("bg", "panel")),
    *(("edge", ground, 3.0) for ground in ("bg", "panel")),
)
VERDICT_STATE = {
    "blocked": "bad",
    "unknown": "odd",
    "at-risk": "warn",
    "needs-setup": "info",
    "likely": "ok",
    "verified": "ok",
    "no-cuda": "dim",
}
SEVERITY_STATE = {"blocker": "bad", "risk": "warn", "setup": "info", "note": "dim"}
ROLE_STATE = {
    "replaced": "ok",
    "passed-through": "warn",
    "absent": "bad",
    "missing": "bad",
    "bundle": "info",
    "system": "dim",
}
FUNCTION_STATE = {
    "implemented": "ok",
    "partial": "warn",
    "no-op": "warn",
    "returns-error": "bad",
    "ends-process": "bad",
    "not-exported": "bad",
    "library-missing": "bad",
    "unknown": "odd",
}
NEED_STATE = {"required": "info", "optional": "dim", "unknown": "odd", "not seen": ""}


def css_variables() -> str:
    """Custom properties for both schemes."""

    def block(colors: dict[str, str]) -> str:
        return "".join(f"--{name}:{value};" for name, value in colors.items())

    return (
        f":root{{color-scheme:light dark;{block(LIGHT)}}}\n"
        f"@media (prefers-color-scheme:dark){{:root{{{block(DARK)}}}}}\n"
        f"@media print{{:root{{color-scheme:light;{block(LIGHT)}}}}}\n"
    )
