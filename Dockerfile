# syntax=docker/dockerfile:1
# One image, two commands: the agent by default; the token server with the page by `python token_server.py`.

# The page's one library. The agent has no use for it; the token server serves it from here.
FROM node:22-slim AS page
WORKDIR /page
COPY frontend/package.json frontend/package-lock.json frontend/.npmrc ./
RUN npm ci --omit=dev --ignore-scripts

# Exactly the versions of locks/run.txt, each checked against its hash. Everything comes as a wheel: no compiler.
FROM python:3.13-slim AS packages
WORKDIR /app
COPY locks/uv.txt locks/run.txt locks/
RUN pip install --no-cache-dir --require-hashes -r locks/uv.txt
RUN uv venv .venv \
    && uv pip sync --no-cache --python .venv --require-hashes --no-build --compile-bytecode locks/run.txt

FROM python:3.13-slim
RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin agent
WORKDIR /app
# Logs appear when they are written. The code belongs to root, so what the agent writes goes to its home.
ENV PATH=/app/.venv/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    ORT_DISABLE_TELEMETRY=1 \
    MEMORY_DIR=/home/agent/memory

COPY --from=packages /app/.venv .venv
# Models are fetched now, not in the first call, by the user that runs: the cache is in that user's home.
USER agent
RUN mkdir /home/agent/memory && python -m livekit.agents download-files
USER root

COPY . .
COPY --from=page /page/node_modules frontend/node_modules
RUN python -m compileall -q *.py memory local server

USER agent
# 8081 is the worker's health check, 3000 the token server. The agent itself needs no port from outside.
EXPOSE 8081 3000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD \
    python -c "import urllib.request as r; r.urlopen('http://127.0.0.1:8081/', timeout=2)" || \
    python -c "import urllib.request as r; r.urlopen('http://127.0.0.1:3000/healthz', timeout=2)"
CMD ["python", "agent.py", "start"]
