"""Prefect: flows, deployments, workers and the server."""
