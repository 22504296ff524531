"""What was found, claim by claim: the sentences are written by hand, the numbers are the results'."""
