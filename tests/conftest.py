"""Shared by all tests. Being here, it also puts this folder on the import path, so that ``import corpus`` works."""
