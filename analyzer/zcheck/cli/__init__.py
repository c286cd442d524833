"""One file a verb; the only stage that knows them all."""
