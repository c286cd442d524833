"""Graph and facts to evidence."""
