"""Graph and facts to evidence: ``collect(...)``."""

from zcheck.collect.collect import collect

__all__ = ["collect"]
