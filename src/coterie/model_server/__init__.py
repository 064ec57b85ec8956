"""The scripted model server: speaks the vendors' wire formats from a YAML script."""
