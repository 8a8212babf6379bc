#!/bin/sh
# Install the Claude Code client that the tests drive, at the version they were written for, into
# .client/ (ignored by git): with npm, or without it there is nothing and those tests are skipped.
# `install.sh required` takes the same binary from the Python package that carries it where npm is
# missing, and fails where neither can be had.
# The npm package says Node 22, but what runs is its native binary, which needs no Node at all.
set -eu
version=2.1.332
carrier=claude-agent-sdk==0.2.189
cd "$(dirname "$0")/../.."
if [ -e .client/.installed-$version ]; then exit 0; fi

give_up() {
  echo "$1: the tests with the real Claude Code client cannot run" >&2
  [ "${2:-}" = required ] && exit 1
  exit 0
}

mkdir -p .client
if command -v npm >/dev/null; then
  echo "installing Claude Code $version for the tests (once, about 400 MB)"
  npm install --prefix .client --no-save --no-package-lock --no-audit --no-fund --loglevel=error \
    "@anthropic-ai/claude-code@$version" || give_up "npm could not install it" "${1:-}"
  ln -sf node_modules/.bin/claude .client/claude
elif [ "${1:-}" = required ]; then
  echo "installing Claude Code $version for the tests from $carrier (once, about 400 MB)"
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --no-deps \
    --target .client/python "$carrier" || give_up "pip could not install it" required
  ln -sf python/claude_agent_sdk/_bundled/claude .client/claude
else
  give_up "npm was not found"
fi
.client/claude --version | grep -qF "$version" || give_up "it is not $version" "${1:-}"
: >.client/.installed-$version
