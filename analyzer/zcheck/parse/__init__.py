"""Bytes to facts: pure readers, each bounded by Limits, that report problems instead of raising."""
