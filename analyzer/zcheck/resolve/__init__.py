"""The Windows loader's rules: facts to a dependency graph."""
