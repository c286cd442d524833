"""Plan, apply, run, record, undo."""
