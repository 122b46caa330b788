#!/usr/bin/env python3
"""Flies a transcript of a router and compares where each request goes with the table in the file.

usage: routes.py INFLIGHT FILE

Sections as in other transcripts, config and requests; then

    == routes    a line a request: its id and its replica. Where replicas are equal and one is drawn, a letter stands
                 for any; the same letter is the same replica, another letter another one.
"""

import csv
import os
import subprocess
import sys
import tempfile


def sections(path):
    found, name = {}, None
    with open(path) as text:
        for line in text:
            if line.startswith('== '):
                name = line[3:].strip()
                found[name] = []
            elif name:
                found[name].append(line)
    return found


def rows(lines):
    return [line.split('#')[0].split() for line in lines if line.split('#')[0].strip()]


def write_trace(path, requests):
    said = [dict(word.split('=') for word in row[4:]) for row in requests]
    columns = sorted({name for words in said for name in words})
    with open(path, 'w') as out:
        out.write(','.join(['arrival_s', 'prompt_tokens', 'output_tokens', *columns]) + '\n')
        for row, words in zip(requests, said):
            out.write(','.join([*row[1:4], *(words.get(name, '') for name in columns)]) + '\n')


def fly(inflight, config, requests):
    with tempfile.TemporaryDirectory() as folder:
        write_trace(os.path.join(folder, 'trace.csv'), requests)
        with open(os.path.join(folder, 'config.yaml'), 'w') as out:
            out.writelines(config)
        done = subprocess.run([inflight, 'run', os.path.join(folder, 'config.yaml'), '--quiet',
                               '--set', f'workload.trace={folder}/trace.csv', '--set', 'workload.format=inflight',
                               '--set', 'workload.arrivals.process=trace', '-o', os.path.join(folder, 'out')],
                              capture_output=True, text=True, timeout=60)
        if done.returncode:
            sys.exit(done.stderr)
        with open(os.path.join(folder, 'out', 'requests.csv')) as text:
            return {int(row['request_id']): row['replica'] for row in csv.DictReader(text)}


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    found = sections(sys.argv[2])
    requests, expected = rows(found['requests']), rows(found['routes'])
    went, letters, wrong = fly(sys.argv[1], found['config'], requests), {}, []
    for i, (request, (name, to)) in enumerate(zip(requests, expected)):
        if to.isalpha() and to not in letters and went[i] not in letters.values():
            letters[to] = went[i]
        if request[0] != name or letters.get(to, to) != went[i]:
            wrong.append(f'{request[0]} goes to {went[i]}, expected {name} to {letters.get(to, to)}')
    if len(requests) != len(expected):
        wrong.append(f'{len(expected)} routes of {len(requests)} requests')
    sys.exit('\n'.join([sys.argv[2], *wrong]) if wrong else 0)


if __name__ == '__main__':
    main()
