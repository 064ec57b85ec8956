"""The HTTP server: REST, events, and the gate before them."""
