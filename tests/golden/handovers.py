#!/usr/bin/env python3
"""Flies a transcript with K/V that moves between replicas or from tiers, and compares it with the tables in the file.

usage: handovers.py INFLIGHT FILE

Sections as in other transcripts, config and requests; then any of

    == steps     START REPLICA ID:TOKENS ..., a line a step: prompts, and in brackets requests that decode
    == moves     ID FROM>TO START-END BLOCKS, a line a move
    == found     ID DEVICE HOST DISK STORE, the tokens of a prompt that were found on each
    == tokens    ID FIRST LAST REPLICA, or ID STATUS: when the client has the first and the last token

Times are seconds.
"""

import csv
import os
import subprocess
import sys
import tempfile

import routes


def table(folder, name):
    with open(os.path.join(folder, name)) as text:
        return list(csv.DictReader(text))


def seconds(text):
    return f'{float(text):g}'


def steps_of(folder, names):
    work = {}
    for row in table(folder, 'work.csv'):
        name = names[int(row['request_id'])]
        prompt, decode = int(row['prefill_tokens']), int(row['decode_tokens'])
        work.setdefault((row['replica'], row['step']), []).append(
            f'{name}:{prompt}' if prompt else f'({name}:{decode})')
    rows = sorted(table(folder, 'steps.csv'), key=lambda row: (float(row['start_s']), int(row['replica'])))
    return [' '.join([seconds(row['start_s']), row['replica'], *sorted(work[row['replica'], row['step']])])
            for row in rows]


def moves_of(folder, names):
    return [f"{names[int(row['request_id'])]} {row['from_replica']}>{row['to_replica']} "
            f"{seconds(row['start_s'])}-{seconds(row['end_s'])} {row['blocks']}"
            for row in table(folder, 'moves.csv')]


def tokens_of(folder, names):
    return [f"{names[int(row['request_id'])]} {seconds(row['first_token_s'])} {seconds(row['finish_s'])} {row['replica']}"
            if row['status'] == 'finished' else f"{names[int(row['request_id'])]} {row['status']}"
            for row in table(folder, 'requests.csv')]


def found_of(folder, names):
    def tokens(row):
        below = [int(row[tier + '_tokens']) for tier in ('host', 'disk', 'store')]
        return [int(row['cached_tokens']) - sum(below), *below]
    return [' '.join([names[int(row['request_id'])], *map(str, tokens(row))]) for row in table(folder, 'requests.csv')]


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    inflight, path = sys.argv[1:]
    found = routes.sections(path)
    requests = routes.rows(found['requests'])
    names = [row[0] for row in requests]
    wrong = []
    with tempfile.TemporaryDirectory() as folder:
        routes.write_trace(os.path.join(folder, 'trace.csv'), requests)
        with open(os.path.join(folder, 'config.yaml'), 'w') as out:
            out.writelines(found['config'])
        out = os.path.join(folder, 'out')
        done = subprocess.run([inflight, 'run', os.path.join(folder, 'config.yaml'), '--quiet',
                               '--set', f'workload.trace={folder}/trace.csv', '--set', 'workload.format=inflight',
                               '--set', 'workload.arrivals.process=trace', '--set', 'output.steps=true',
                               '--set', 'output.work=true', '-o', out],
                              capture_output=True, text=True, timeout=60)
        if done.returncode:
            sys.exit(done.stderr)
        for section, read in (('steps', steps_of), ('moves', moves_of), ('found', found_of),
                              ('tokens', tokens_of)):
            if section not in found:
                continue
            expected = [' '.join(row) for row in routes.rows(found[section])]
            actual = read(out, names)
            if expected != actual:
                wrong += [f'{path}: section {section} differs', '-- expected', *expected, '-- actual', *actual]
    sys.exit('\n'.join(wrong) if wrong else 0)


if __name__ == '__main__':
    main()
