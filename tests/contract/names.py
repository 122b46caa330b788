#!/usr/bin/env python3
"""Limits the number of names from the headers that a plain policy of each kind needs.

Of each worked policy it counts the identifiers that begin with ifl_ or IFL_, and the fields of the headers' structs
that the source reads or sets. The fields by which a module describes itself (.kind = ..., .name = ...) are printed
beside them and not counted. The feedback queue is far from the plainest order; its limit is what it needs now, so that
a change of the contract cannot make that more.

usage: names.py INCLUDE_DIR EXAMPLES_DIR
"""

import os
import re
import sys

MOST = [  # kind, policy, names
    ('order', 'slack', 20),
    ('order', 'least_charged', 20),
    ('order, a feedback queue', 'plain_mlfq', 32),
    ('admission', 'token_bucket', 20),
    ('batching rule', 'decode_first', 45),
    ('preemption', 'most_served', 22),
]
DESIGNATOR = re.compile(r'(?<=[{,\s])((?:\.\w+)+)\s*=(?!=)')
FIELD = re.compile(r'(?:->|(?<=[\w\])])\.)\s*([a-z_]\w*)')
NAME = re.compile(r'\b(?:ifl|IFL)_\w+')


def code_of(path):
    """Without comments, strings and includes."""
    with open(path) as text:
        code = re.sub(r'/\*.*?\*/', ' ', text.read(), flags=re.S)
    return re.sub(r'"(?:[^"\\]|\\.)*"|#include.*', ' ', code)


def fields_of_headers(folder):
    """Members of structs and unions, function pointers among them."""
    fields = set()
    for name in ('request.h', 'step.h', 'batching.h', 'fleet.h', 'policy.h', 'error.h'):
        code = code_of(os.path.join(folder, 'inflight', name))
        for body in re.findall(r'(?:struct|union)\s*\w*\s*\{(.*?)\n\s*\}', code, flags=re.S):
            fields |= set(re.findall(r'\(\*(\w+)\)', body))
            fields |= {word for line in body.split(';') for word in
                       re.findall(r'\b(\w+)(?:\[[^]]*\])?\s*(?:,|$)', line.strip()) if '(' not in line}
    return fields


def own_fields(code):
    """Members of the policy's own structs, which are not the contract's."""
    return {word for body in re.findall(r'struct \w+ \{(.*?)\n\};', code, flags=re.S)
            for word in re.findall(r'(\w+)\s*[;,]', body)}


def names_of(path, fields):
    """Identifiers, fields that are read or set, fields of initialisers."""
    code = code_of(path)
    described = {name for path in DESIGNATOR.findall(code) for name in path.split('.')[1:]}
    used = {name for name in FIELD.findall(DESIGNATOR.sub(' ', code)) if name in fields and name not in own_fields(code)}
    return sorted(set(NAME.findall(code))), sorted(used), sorted(described)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    fields = fields_of_headers(sys.argv[1])
    too_many = []
    for kind, policy, most in MOST:
        names, used, described = names_of(os.path.join(sys.argv[2], policy + '.c'), fields)
        n = len(names) + len(used)
        print(f'{kind}, {policy}: {n}, at most {most}\n  {" ".join(names)}\n  {" ".join(used)}\n'
              f'  not counted: {" ".join(described)}')
        if n > most:
            too_many.append(f'{policy} needs {n} names, at most {most} were expected')
    sys.exit('\n'.join(too_many) or 0)


if __name__ == '__main__':
    main()
