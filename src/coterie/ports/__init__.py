"""What the host needs of the world, as Protocols."""
