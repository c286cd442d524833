"""The cache of PTX and cubin facts is part of the cache of all facts (``cache_store``)."""

from __future__ import annotations

from zcheck.cli.cache_store import FactCache as FileCache
from zcheck.cli.cache_store import default_path

__all__ = ["FileCache", "default_path"]
