"""A turn: its life, its transcript and the agent loop as data."""
