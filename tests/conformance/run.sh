#!/usr/bin/env bash
# Run one conformance script, or say why not and exit with 77, which ctest counts as skipped.
#
#   tests/conformance/run.sh VENV PROGRAM... -- SCRIPT [ARGUMENT...]
#
# PROGRAM: commands that the script needs.
set -euo pipefail

venv=$1
shift
while [ "$1" != -- ]; do
  PATH=$PATH:/usr/sbin command -v "$1" >/dev/null || { echo "skipped: $1 is not installed"; exit 77; }
  shift
done
shift
if [ ! -f "$venv/complete" ]; then
  echo "skipped: no reference libraries in $venv; \`make venv\` fetches them from PyPI"
  exit 77
fi
# The reference client is to speak the plain Hub protocol, to the servers of these tests alone.
exec env PATH="$PATH:/usr/sbin" HF_HUB_DISABLE_XET=1 HF_HUB_DISABLE_TELEMETRY=1 \
  HF_HUB_DISABLE_PROGRESS_BARS=1 PYTHONDONTWRITEBYTECODE=1 "$venv/bin/python" "$@"
