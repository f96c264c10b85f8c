# The service with its console: see docs/serving_team.md.
FROM python:3.11-slim

WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY locked locked
COPY eqsep eqsep
RUN pip install --no-cache-dir --require-hashes --requirement locked/serve.txt \
    && PIP_CONSTRAINT=constraints.txt pip install --no-cache-dir --no-deps . \
    && useradd --system --uid 1000 --create-home eqsep \
    && install -d -o eqsep /data

USER 1000
WORKDIR /data
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/health/ready')"]
ENTRYPOINT ["eqsep"]
CMD ["serve", "--data", "/data", "--host", "0.0.0.0"]
