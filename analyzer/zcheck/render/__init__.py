"""A report to text and the other formats."""
