"""JSON-RPC 2.0."""

from coterie.interfaces.rpc.call import answer

__all__ = ["answer"]
