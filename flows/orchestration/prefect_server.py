"""Prefect's own command, its server's connections bounded: `python -m … server start`."""

import uvicorn.config

from flows.orchestration.listening import BoundedProtocol, raise_open_files

if __name__ == "__main__":
    raise_open_files()
    # Prefect has no option for uvicorn's protocol, and takes the one by this name
    uvicorn.config.HTTP_PROTOCOLS["auto"] = f"{BoundedProtocol.__module__}:{BoundedProtocol.__name__}"
    from prefect.cli import app

    app()
