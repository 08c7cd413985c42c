# The site's image: web server, workers and commands; which one is the command line's business. It runs
# as a user without rights, and with a read-only file system: what changes is in /data, /media, /models and /tmp.
# Where the package index offers CUDA builds of torch first, build with
#   --build-arg PIP_EXTRA_INDEX_URL=<index of the CPU builds>

FROM python:3.11.14-slim-bookworm AS packages
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
RUN python -m venv /opt/venv
# With `--build-arg EXTRA=requirements-torch.txt` the image can run models of a folder or of the hub.
ARG EXTRA=requirements.txt
COPY requirements*.txt .
RUN /opt/venv/bin/pip install --no-cache-dir --disable-pip-version-check -r requirements.txt -r $EXTRA \
    && /opt/venv/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps \
       -r requirements-no-deps.txt -r requirements-bundled.txt

FROM python:3.11.14-slim-bookworm
RUN useradd --system --uid 10001 --create-home ragsite \
    && install -d -o ragsite -g ragsite /data /media /models
COPY --from=packages /opt/venv /opt/venv
ENV PATH=/opt/venv/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 MALLOC_ARENA_MAX=2 \
    RAGSITE_VAR_DIR=/data MEDIA_ROOT=/media STATIC_ROOT=/srv/ragsite/collected HF_HOME=/models
WORKDIR /srv/ragsite
COPY . .
RUN python -m compileall -qq -x /tests/ . \
    && SECRET_KEY=only-for-this-step python manage.py collectstatic --noinput --verbosity 0
USER ragsite
VOLUME ["/data", "/media", "/models"]
EXPOSE 8000
# Of the web server. Workers and other commands turn it off (--no-healthcheck) or have their own.
HEALTHCHECK --interval=15s --timeout=5s --retries=4 --start-period=60s --start-interval=1s \
    CMD ["python", "-c", "import http.client as http; site = http.HTTPConnection('localhost', 8000, timeout=4); site.request('GET', '/health/ready'); raise SystemExit(site.getresponse().status != 200)"]
CMD ["gunicorn", "ragsite.wsgi:application", "--config=python:ragsite.gunicorn", "--bind=0.0.0.0:8000", \
     "--worker-tmp-dir=/dev/shm"]
