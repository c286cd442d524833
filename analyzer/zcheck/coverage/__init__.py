"""The coverage database: what a stack answers to each DLL name and function."""
