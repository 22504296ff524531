"""Budget Distribution and Budget Absorption: publications that the distance to the last one decides."""
