"""The user's PC, real or faked, to host facts."""
