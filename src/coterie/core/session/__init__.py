"""What a session is."""
