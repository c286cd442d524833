"""What belongs to the application: a path → the bundle."""

from __future__ import annotations

from zcheck.discover.bundle import discover

__all__ = ["discover"]
