"""The doors: each decodes, performs one operation, encodes."""
