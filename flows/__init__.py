"""Command line and orchestration; linear algebra runs in one thread unless the environment says otherwise."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
