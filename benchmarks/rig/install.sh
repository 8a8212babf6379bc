#!/bin/sh
# An environment of its own for the runs of the rig: PyTorch, transformers, TRL; about 6 GB on disk.
#
#     benchmarks/rig/install.sh [FOLDER]      default: benchmarks/rig/.venv
#
# Uses pip as it is set up here. Run again, it brings the environment up to requirements.txt.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$here/.venv}
for name in "${PYTHON:-}" python3 python3.13 python3.12 python3.11 python3.10; do
    [ -n "$name" ] || continue
    if "$name" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
        found=$name
        break
    fi
done
if [ -z "${found:-}" ]; then
    echo "the rig needs Python 3.10 or newer with venv; name it: PYTHON=/path/to/python3 $0" >&2
    exit 1
fi
[ -x "$folder/bin/python" ] || "$found" -m venv "$folder"
"$folder/bin/python" -m pip install --quiet --requirement "$here/requirements.txt"
"$folder/bin/python" -c 'import torch, transformers, trl; print("torch", torch.__version__,
      "transformers", transformers.__version__, "trl", trl.__version__)'
