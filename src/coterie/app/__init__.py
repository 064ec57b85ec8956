"""One synchronous function per verb; each runs inside one transaction."""
