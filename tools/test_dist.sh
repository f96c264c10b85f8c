#!/usr/bin/env bash
# Build both distributions, and test the source one on its own: tools/test_dist.sh [PYTEST OPTION...]
# It is unpacked and installed far from the clone; tests that need real data skip.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$PWD/.venv/bin/python
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export PIP_CONSTRAINT=$PWD/constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 OMP_NUM_THREADS=1
unset PYTHONPATH EQSEP_DATA

"$python" -m build --outdir "$folder" .
others=$("$python" -m zipfile --list "$folder"/eqsep-*.whl | awk 'NR > 1 { print $1 }' | grep -vE '^eqsep(/|-[^/]+/)' || true)
if [ -n "$others" ]; then
    echo "The wheel should hold the package alone, but has: $others" >&2
    exit 1
fi

mkdir "$folder/source"
tar --extract --file "$folder"/eqsep-*.tar.gz --directory "$folder/source" --strip-components=1
"$python" -m venv "$folder/venv"
cd "$folder/source"
"$folder/venv/bin/pip" install --quiet ".[test,nn,onnx,ray]"
"$folder/venv/bin/pytest" -n 2 --dist loadfile "$@"
