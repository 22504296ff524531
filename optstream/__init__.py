"""OptStream: private, consistent releases of sensitive time series.

`import optstream` is light: a public name loads its package when it is first used. Which names are public,
and where they come from, stands in `__init__.pyi` alone; type checkers read it, too.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
