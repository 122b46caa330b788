#!/usr/bin/env python3
"""Random workloads, flown by inflight and by the slow schedulers beside this file: every step and
every request must be the same.

usage: compare.py INFLIGHT SOURCE [CONFIGS [PRESET...]]

A configuration is a draw of settings; 20 random traces fly through it in one sweep. CONFIGS is how many, or
which: FIRST-LAST.
"""

import csv
import os
import subprocess
import sys
import tempfile

import cached
import deadlines
import fair
import groups
import preemptive
import relatives
import reserving
import schedulers
import sglang
import shortest
import urgent
from machine import EngineFails, Request, fly

N_TRACES = 20
STEP_COLUMNS = ['prefill_tokens', 'decode_tokens', 'prefill_seqs', 'decode_seqs', 'context_tokens',
                'running', 'waiting', 'swapped', 'preempted', 'blocks_out', 'blocks_in',
                'kv_used_blocks']


def random_trace(rng, cls, settings):
    """Rows of arrival (ms), prompt, output, priority, client and what else the scheduler reads."""
    n = rng.randint(1, 24)
    at, rows = 0, []
    longest = rng.choice([6, 20, settings['max_model_len']])
    for _ in range(n):
        at += rng.choice([0, 0, 1, 5, 30, 200])
        prompt, output = rng.randint(1, longest), rng.randint(1, longest)
        priority, client = rng.randint(0, 2), rng.randint(0, 3)
        more = cls.columns(rng, prompt, output) if hasattr(cls, 'columns') else {}
        rows.append((at, prompt, output, priority, client, more))
    return rows


def random_cost(rng):
    """Whole milliseconds, so that nothing is rounded."""
    return {'step': rng.choice([1, 7]), 'prefill_token': rng.choice([0, 1, 3]),
            'decode_seq': rng.choice([0, 2]), 'context_token': rng.choice([0, 1])}


def write_traces(folder, traces):
    names = []
    for i, rows in enumerate(traces):
        name = os.path.join(folder, f'trace{i:02d}.csv')
        more = list(rows[0][-1])
        with open(name, 'w') as out:
            names_of = ['arrival_s', 'prompt_tokens', 'output_tokens', 'priority', 'client', *more]
            out.write(','.join(names_of) + '\n')
            for at, *columns, values in rows:
                cells = [f'{at / 1000:.3f}', *columns, *(values[column] for column in more)]
                out.write(','.join('' if cell is None else str(cell) for cell in cells) + '\n')
        names.append(name)
    return names


def configuration(cls, settings, cost, names):
    sets = {
        'serving.preset': cls.preset,
        'serving.max_model_len': settings['max_model_len'],
        'serving.kv.num_blocks': settings['num_blocks'],
        'serving.kv.block_tokens': settings['block_tokens'],
        'serving.kv.prefix_cache': 'none',
        'cost.model': 'linear',
        'cost.step_s': cost['step'] / 1000,
        'cost.prefill_token_s': cost['prefill_token'] / 1000,
        'cost.decode_seq_s': cost['decode_seq'] / 1000,
        'cost.context_token_s': cost['context_token'] / 1000,
        # without a model every host block costs nothing: there are as many as device blocks
        'serving.kv.swap_gib': 1 if settings['host_blocks'] else 0,
        'output.steps': 'true',
        'sweep.workload.trace': '[' + ', '.join(names) + ']',
    }
    settings['host_blocks'] = settings['num_blocks'] if settings['host_blocks'] else 0
    sets.update({key: settings[name] for name, key in cls.keys.items()})
    more = getattr(cls, 'more_sets', {})
    sets.update(more(settings) if callable(more) else more)
    return sets


def run(inflight, folder, sets):
    base = os.path.join(folder, 'config.yaml')
    with open(base, 'w') as out:
        out.write('workload: {trace: ' + os.path.join(folder, 'trace00.csv') + '}\n')
    command = [inflight, 'run', base, '--quiet', '-o', os.path.join(folder, 'out')]
    for key, value in sets.items():
        command += ['--set', f'{key}={value}']
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    if done.returncode:
        return done.stderr.strip() or f'exit code {done.returncode}'
    return None


def read(folder, name):
    points = {}
    with open(os.path.join(folder, 'out', name)) as text:
        for row in csv.DictReader(text):
            points.setdefault(int(row['point']), []).append(row)
    return points


def ms(text):
    return round(float(text) * 1000) if text else None


def step_of(row):
    step = {name: int(row[name]) for name in STEP_COLUMNS}
    step['start'], step['duration'] = ms(row['start_s']), ms(row['duration_s'])
    return step


def request_of(row):
    return {'status': row['status'], 'first_scheduled': ms(row['first_scheduled_s']),
            'first_token': ms(row['first_token_s']), 'finish': ms(row['finish_s']),
            'preemptions': int(row['preemptions']), 'swap_outs': int(row['swap_outs'])}


def expected_request(r):
    return {'status': r.status, 'first_scheduled': r.first_scheduled, 'first_token': r.first_token,
            'finish': r.finish, 'preemptions': r.preemptions, 'swap_outs': r.swap_outs}


def difference(expected, actual):
    for i, (want, have) in enumerate(zip(expected, actual)):
        wrong = [k for k in want if want[k] != have[k]]
        if wrong:
            return i, ', '.join(f'{k} is {have[k]}, expected {want[k]}' for k in wrong)
    if len(expected) != len(actual):
        return min(len(expected), len(actual)), f'{len(actual)} rows, expected {len(expected)}'
    return None


def compare_point(cls, settings, cost, rows, steps, requests):
    """None, or what differs first."""
    everyone = [Request(i, *row[:-1], **row[-1]) for i, row in enumerate(rows)]
    try:
        expected, stalled = fly(cls(settings), everyone, cost)
    except EngineFails:
        return None
    if stalled:
        return f'the slow scheduler {stalled}'
    found = difference(expected, [step_of(row) for row in steps])
    if found:
        return f'step {found[0]}: {found[1]}'
    by_id = sorted(requests, key=lambda row: int(row['request_id']))
    found = difference([expected_request(r) for r in everyone], [request_of(r) for r in by_id])
    return f'request {found[0]}: {found[1]}' if found else None


def compare_config(inflight, cls, seed):
    """Steps and preemptions compared, and a message if something differs."""
    rng = schedulers.rng_of(f'{cls.preset} {seed}')
    settings = schedulers.random_case(cls, rng)
    cost = random_cost(rng)
    traces = [random_trace(rng, cls, settings) for _ in range(N_TRACES)]
    n_steps = n_preemptions = 0
    with tempfile.TemporaryDirectory() as folder:
        names = write_traces(folder, traces)
        sets = configuration(cls, settings, cost, names)
        wrong = run(inflight, folder, sets)
        if wrong:
            return 0, 0, f'{wrong} with {settings}'
        steps, requests = read(folder, 'steps.csv'), read(folder, 'requests.csv')
    for point, rows in enumerate(traces):
        wrong = compare_point(cls, settings, cost, rows, steps.get(point, []),
                              requests.get(point, []))
        if wrong:
            return 0, 0, f'{wrong}\n  settings {settings}\n  cost {cost}\n  trace {rows}'
        n_steps += len(steps.get(point, []))
        n_preemptions += sum(int(row['preempted']) for row in steps.get(point, []))
    return n_steps, n_preemptions, None


def without_oracle(source):
    presets = {os.path.splitext(name)[0]
               for name in os.listdir(os.path.join(source, 'configs', 'serving'))}
    return sorted(presets - {cls.preset for cls in schedulers.families()})


def configurations(text):
    first, to, last = text.partition('-')
    return range(int(first), int(last) + 1) if to else range(int(first))


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    inflight, source = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    seeds = configurations(sys.argv[3] if len(sys.argv) > 3 else '10')
    os.environ['INFLIGHT_DATA'] = source
    n_failures = 0
    for preset in without_oracle(source):
        print(f'FAILED: {preset} has no slow scheduler')
        n_failures += 1
    for cls in schedulers.families():
        if sys.argv[4:] and cls.preset not in sys.argv[4:]:
            continue
        n_steps = n_preemptions = 0
        for seed in seeds:
            n, preempted, wrong = compare_config(inflight, cls, seed)
            n_steps += n
            n_preemptions += preempted
            if wrong:
                print(f'FAILED: {cls.preset}, configuration {seed}: {wrong}')
                n_failures += 1
                break
        else:
            name = cls.preset + getattr(cls, 'beside', '')
            print(f'{name}: {len(seeds) * N_TRACES} random workloads, {n_steps} steps, '
                  f'{n_preemptions} preemptions, the same')
    sys.exit(n_failures > 0)


if __name__ == '__main__':
    main()
