"""PeGaSus: noisy steps, smoothed over groups that are found privately."""
