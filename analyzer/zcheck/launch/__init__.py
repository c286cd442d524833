"""Runs a program through ZLUDA: plan (pure), apply, run, record, undo; leaves nothing behind."""
