"""Graph and facts to evidence: ``collect(...)``; ``own_path_variants(...)`` for files that no edge leads to."""

from zcheck.collect.collect import collect, own_path_variants

__all__ = ["collect", "own_path_variants"]
