"""Every page that people read, live or written out: frozen values in, HTML out."""
