"""Standard errors as they are published: what cannot be one is left out, and keeps no day from readers."""

import numpy as np

from optstream.estimation.holding import UNKNOWN
from tasks.release.records.published_rows import known_errors
from tests.tasks.two_regions import CONFIGURATION


def test_what_cannot_be_a_standard_error_is_not_known(tmp_path):
    from tasks.config import load_settings

    (tmp_path / "optstream.toml").write_text(CONFIGURATION)
    settings = load_settings(tmp_path / "optstream.toml")
    nothing = np.sqrt(UNKNOWN) * float(settings.privacy.resolution)
    given = np.array([[2.5, 0.0, np.nan], [np.inf, nothing, 2 * nothing]])
    assert np.array_equal(np.isfinite(known_errors(settings, given)), [[True, False, False], [False] * 3])
    assert np.isnan(known_errors(settings, None)).all()
