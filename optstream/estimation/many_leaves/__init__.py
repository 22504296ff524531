"""How the errors of more leaves hang together than a matrix of them all can be written for."""
