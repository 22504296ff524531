"""OptStream: samples and sums of features, under a plan that no window can exceed."""
