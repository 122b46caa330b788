"""What tests of programs that others wrote share: which of them are installed, and all of these in turn."""

import importlib.util
import os
import sys


def has_module(name):
    return importlib.util.find_spec(name) is not None


def each(table, fly):
    """INFLIGHT ROOT [NAME]... on the command line: fly(program, root, what) for those named of {name: (what, there)}, or all that are
    there. The exit code: 77 if one that is named is not there, or none is."""
    program, root, names = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]), sys.argv[3:]
    missing = [name for name in names if not table[name][1]()]
    if missing:
        print('skipped: not installed:', *missing)
        return 77
    there = [name for name in names or table if table[name][1]()]
    for name in there:
        fly(program, root, table[name][0])
        print('ok', name)
    return 0 if there else 77
