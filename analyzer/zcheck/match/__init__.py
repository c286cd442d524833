"""Rule files and evidence to findings."""
