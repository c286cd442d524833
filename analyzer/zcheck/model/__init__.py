"""The frozen types that stages hand to one another; no input, no output."""
