"""The evaluation as a task: read the data, run what is missing, keep the results, write the page."""
