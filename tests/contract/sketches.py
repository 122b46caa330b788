#!/usr/bin/env python3
"""Systems that the contract must be able to express: a sketch of each compiles against the public headers alone.

A sketch has at most 40 lines. Each enumerator of the headers that modules and engines read is used by a sketch, a
module or an engine, so that the contract has no enumerator without a use.

usage: sketches.py CC INCLUDE_DIR SOURCE_ROOT
"""

import glob
import os
import re
import subprocess
import sys

HEADERS = ['request.h', 'step.h', 'batching.h', 'fleet.h', 'policy.h', 'engine.h']
MOST_LINES = 40
FLAGS = ['-std=c17', '-Wall', '-Wextra', '-Werror', '-fsyntax-only']


def enumerators(include):
    found = set()
    for header in HEADERS:
        with open(os.path.join(include, 'inflight', header)) as text:
            code = re.sub(r'/\*.*?\*/', ' ', text.read(), flags=re.S)
        for body in re.findall(r'enum(?: \w+)? \{(.*?)\}', code, flags=re.S):
            found |= set(re.findall(r'\b(IFL_\w+)\b', body))
    return found


def words(paths):
    found = set()
    for path in paths:
        with open(path) as text:
            found |= set(re.findall(r'\bIFL_\w+', text.read()))
    return found


def complaints(compiler, include, root):
    sketches = sorted(glob.glob(os.path.join(root, 'tests/contract/sketches/*.c')))
    for path in sketches:
        name = os.path.basename(path)
        with open(path) as text:
            n_lines = len(text.readlines())
        if n_lines > MOST_LINES:
            yield f'{name}: {n_lines} lines, at most {MOST_LINES} were expected'
        compiled = subprocess.run([*compiler.split(), *FLAGS, '-I', include, path], capture_output=True, text=True)
        if compiled.returncode != 0:
            yield f'{name}: {compiled.stderr}'
        else:
            print(f'{name}: {n_lines} lines')
    modules = glob.glob(os.path.join(root, 'policies/**/*.[ch]'), recursive=True)
    loop = glob.glob(os.path.join(root, 'sim/**/*.c'), recursive=True)
    engines = glob.glob(os.path.join(root, 'gpu/**/*.c'), recursive=True)
    unused = enumerators(include) - words(sketches + modules + loop + engines) - {'IFL_REFUSE_ARRIVAL'}  # ifl_shed
    if unused:
        yield f'no sketch, module or engine uses {", ".join(sorted(unused))}'


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit('\n'.join(complaints(*sys.argv[1:])) or 0)


if __name__ == '__main__':
    main()
