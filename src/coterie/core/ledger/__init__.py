"""Messages between sessions: states and moves."""
