"""The way of one day: look up, reserve, draw, estimate, publish, revise."""
