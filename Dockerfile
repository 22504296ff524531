# OptStream as a service: `optstream serve` on a folder that holds optstream.toml (docs/schedule.md).
# No secret belongs into an image: give a ledger's URL as OPTSTREAM_LEDGER_URL to the container.
FROM python:3.11.14-slim-bookworm AS build
WORKDIR /source
COPY pyproject.toml constraints.txt README.md ./
COPY optstream optstream
COPY data_contracts data_contracts
COPY tasks tasks
COPY flows flows
RUN python -m venv /opt/optstream \
    && /opt/optstream/bin/pip install --no-cache-dir --constraint constraints.txt '.[postgresql,s3]'

FROM python:3.11.14-slim-bookworm
RUN useradd --uid 10001 --create-home optstream \
    && install --directory --owner=optstream --mode=0700 /data
COPY --from=build /opt/optstream /opt/optstream
ENV PATH="/opt/optstream/bin:$PATH" PYTHONUNBUFFERED=1
USER 10001
WORKDIR /data
VOLUME ["/data"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["optstream"]
CMD ["serve", "--config", "/data/optstream.toml"]
