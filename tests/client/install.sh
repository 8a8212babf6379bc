#!/bin/sh
# Install the Claude Code client that the tests drive, at the version they were written for, into
# .client/ (ignored by git). Without npm nothing is installed, and those tests are skipped.
# The package says Node 22, but what runs is its native binary, which needs no Node.
set -eu
version=2.1.332
cd "$(dirname "$0")/../.."
if [ -e .client/.installed-$version ]; then exit 0; fi
if ! command -v npm >/dev/null; then
  echo "npm was not found: the tests with the real Claude Code client will be skipped" >&2
  exit 0
fi
mkdir -p .client
echo "installing Claude Code $version for the tests (once, about 400 MB)"
if ! npm install --prefix .client --no-save --no-package-lock --no-audit --no-fund --loglevel=error \
  "@anthropic-ai/claude-code@$version"; then
  echo "the Claude Code client could not be installed: its tests will be skipped" >&2
  exit 0
fi
.client/node_modules/.bin/claude --version >/dev/null
: >.client/.installed-$version
