"""The scripted model server: speaks the vendors' wire formats from a YAML script."""

from coterie.model_server.document import ScriptError
from coterie.model_server.reading import load_script, parse_script
from coterie.model_server.script import Script
from coterie.model_server.server import ModelServer, serve

__all__ = ["ModelServer", "Script", "ScriptError", "load_script", "parse_script", "serve"]
