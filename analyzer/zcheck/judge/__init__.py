"""Findings to a verdict for one stack, and the report."""
