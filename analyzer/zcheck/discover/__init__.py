"""What belongs to the application: a path → the bundle; a folder → the bundles of its applications."""

from __future__ import annotations

from zcheck.discover.applications import bundles, find_applications
from zcheck.discover.bundle import discover

__all__ = ["bundles", "discover", "find_applications"]
