"""The experiments of the paper on temporal leakage (Cao et al., IEEE TKDE 2018), rerun: figures 3 to 9."""
