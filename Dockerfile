# seq2see's server with its page, on the CPU, as a user without rights. From the project's folder:
#
#   seq2see pack runs/names --out names.seq2see
#   docker build -t seq2see .
#   docker run --read-only --tmpfs /tmp -p 127.0.0.1:8000:8000 -e SEQ2SEE_TOKEN="$TOKEN" \
#     -v "$PWD/names.seq2see:/models/names.seq2see:ro" seq2see serve /models/names.seq2see --host 0.0.0.0
#
# or `docker compose up` (compose.yaml). runtime/Dockerfile makes a smaller image, without torch, of one exported model.

# ---- an environment with torch for the CPU, and everything else as constraints.txt pins it
FROM python:3.11-slim AS build
WORKDIR /project
RUN python -m venv /venv
ENV PATH=/venv/bin:$PATH
COPY constraints.txt ./
# Torch's own index has the same version without the libraries of CUDA (0.2 GB instead of 5.7 GB).
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN pip install --no-cache-dir --no-compile --index-url ${TORCH_INDEX} --extra-index-url https://pypi.org/simple \
    -c constraints.txt torch
COPY pyproject.toml README.md LICENSE ./
COPY seq2see seq2see
# Further extras of models that read files: "studio,images", "studio,sound", "studio,video"
ARG EXTRAS=studio
RUN pip install --no-cache-dir --no-compile -c constraints.txt ".[${EXTRAS}]"

# ---- the same without what was needed to build it
FROM python:3.11-slim
COPY --from=build /venv /venv
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin seq2see && mkdir /models
ENV PATH=/venv/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 MPLCONFIGDIR=/tmp/matplotlib
USER 10001
WORKDIR /models
EXPOSE 8000
# Every route wants the token, this one too.
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen(u.Request('http://127.0.0.1:8000/health', \
headers={'Authorization': 'Bearer ' + os.environ.get('SEQ2SEE_TOKEN', '')}), timeout=4)"]
ENTRYPOINT ["seq2see"]
CMD ["--help"]
