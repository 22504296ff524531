"""Command line and orchestration.

Importing it has linear algebra run in one thread, unless the environment says otherwise: on matrices as small
as here, waiting threads of OpenBLAS use up a second processor and save no time.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
