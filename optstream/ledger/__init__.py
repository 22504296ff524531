"""Spends and releases, durable: exactly one release a period, and no window above its privacy budget.

A public name loads its module when it is first used; which names are public stands in `__init__.pyi` alone.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
