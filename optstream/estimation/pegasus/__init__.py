"""What PeGaSus computes from noisy steps: smoothing over groups, and groups of inner nodes."""
