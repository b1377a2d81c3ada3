"""Makes the method in the variable BUG (module:Class.method) fail, in proxies with this folder on their path."""

import os
from importlib import import_module
from typing import NoReturn

_module, _, _path = os.environ["BUG"].partition(":")
_where, _name = _path.split(".")


def _fails(*_: object, **__: object) -> NoReturn:
    raise ValueError("a bug")


setattr(getattr(import_module(_module), _where), _name, _fails)
