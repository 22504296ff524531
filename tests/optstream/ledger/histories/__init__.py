"""Random histories of three streams of one population, against the brute force."""
