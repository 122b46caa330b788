#!/usr/bin/env python3
"""Random workloads, flown by inflight and by the slow schedulers beside this file: every step and
every request must be the same.

usage: compare.py INFLIGHT SOURCE [CONFIGS [PRESET...]]

A configuration is a draw of settings; 20 random traces fly through it in one sweep. CONFIGS is a number of
configurations, after which more are drawn until preemptions and swap-outs are frequent enough in families that have
them; or a range FIRST-LAST.
"""

import collections
import csv
import os
import subprocess
import sys
import tempfile

import cached
import deadlines
import fair
import groups
import idle
import newest
import preemptive
import relatives
import reserving
import schedulers
import sglang
import shortest
import urgent
from machine import EngineFails, Request, fly

N_TRACES = 20
LEAST = 10              # preemptions, and swap-outs, of a family that has them
MOST_MORE = 100         # configurations drawn to reach LEAST
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
    return converse(rng, rows, longest) if 'prefix_group' in rows[0][-1] and rng.random() < 0.5 else rows


def converse(rng, rows, longest):
    """Sessions of several turns; the prompt of most turns repeats the whole session and adds tokens."""
    said, turns = {}, []
    for at, prompt, output, *columns, more in rows:
        talk = rng.choice([None, 1, 2])
        heard = said.get(talk, 0) - rng.choice([0, 0, 0, rng.randint(0, 20)])
        more = {**more, 'session': talk, 'think_s': None}
        if talk:
            prompt = min(heard + rng.randint(1, 8), longest) if heard > 0 else prompt
            more['prefix_group'], more['prefix_tokens'] = 10 + talk, rng.choice([prompt, prompt, prompt, 1])
            more['think_s'] = rng.choice([0.001, 0.02, 0.3]) if talk in said else None
            said[talk] = prompt + output
        turns.append((at, prompt, output, *columns, more))
    return turns


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
        'serving.kv.null_blocks': 0,
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


class Tally:
    """Counts of what was compared in a family."""

    def __init__(self):
        self.workloads = self.steps = self.preemptions = self.swap_outs = 0
        self.failures = collections.Counter()   # workloads in which the engine itself fails, by reason

    def __iadd__(self, other):
        for name, n in vars(other).items():
            setattr(self, name, getattr(self, name) + n)
        return self

    def lacks(self, cls):
        """The events that the family can have and that are too rare so far."""
        return [name for name, can in (('preemptions', cls.preempts), ('swap_outs', cls.swaps))
                if can and getattr(self, name) < LEAST]

    def complaint(self, cls):
        if sum(self.failures.values()) > cls.fails_at_most * self.workloads:
            return f'{self}: more than {cls.fails_at_most:.0%} end early'
        if self.lacks(cls):
            return f'{self}: fewer than {LEAST} {" and ".join(self.lacks(cls))}'
        if self.preemptions and not cls.preempts or self.swap_outs and not cls.swaps:
            return f'{self}: it is said to do no such thing'
        return None

    def __str__(self):
        text = f'{self.workloads} random workloads, {self.steps} steps, {self.preemptions} preemptions'
        if self.swap_outs:
            text += f', {self.swap_outs} swap-outs'
        for reason, n in self.failures.items():
            text += f', {n} workloads up to "{reason}"'
        return text


class Flight:
    """A workload, flown by the slow scheduler."""

    def __init__(self, cls, settings, cost, rows):
        self.requests = [Request(i, *row[:-1], **row[-1]) for i, row in enumerate(rows)]
        self.steps, self.ends = fly(cls(settings), self.requests, cost)
        self.fails = isinstance(self.ends, EngineFails)

    def tally(self):
        tally = Tally()
        tally.workloads, tally.steps = 1, len(self.steps)
        tally.preemptions = sum(step['preempted'] for step in self.steps)
        tally.swap_outs = sum(r.swap_outs for r in self.requests)
        tally.failures.update([str(self.ends)] if self.fails else [])
        return tally

    def differs(self, steps, requests):
        """None, or the first difference. If the engine itself fails, the steps before are compared."""
        if self.ends and not self.fails:
            return f'the slow scheduler {self.ends}'
        n = len(self.steps) if self.fails else None
        found = difference(self.steps, [step_of(row) for row in steps[:n]])
        if found:
            return f'step {found[0]}: {found[1]}'
        if self.fails:
            return None
        by_id = sorted(requests, key=lambda row: int(row['request_id']))
        found = difference([expected_request(r) for r in self.requests], [request_of(r) for r in by_id])
        return f'request {found[0]}: {found[1]}' if found else None


class Configuration:
    """A draw of settings and its workloads, flown by the slow scheduler."""

    def __init__(self, cls, seed, flight=Flight):
        rng = schedulers.rng_of(f'{cls.preset} {seed}')
        self.cls, self.settings = cls, schedulers.random_case(cls, rng)
        self.cost = random_cost(rng)
        self.traces = [random_trace(rng, cls, self.settings) for _ in range(N_TRACES)]
        self.flights = [flight(cls, self.settings, self.cost, rows) for rows in self.traces]
        self.tally = Tally()
        for flight in self.flights:
            self.tally += flight.tally()

    def differences(self, inflight):
        """(workload, None or its first difference) for each workload."""
        with tempfile.TemporaryDirectory() as folder:
            names = write_traces(folder, self.traces)
            wrong = run(inflight, folder, configuration(self.cls, self.settings, self.cost, names))
            if wrong:
                yield 0, f'{wrong} with {self.settings}'
                return
            steps, requests = read(folder, 'steps.csv'), read(folder, 'requests.csv')
        for point, flight in enumerate(self.flights):
            wrong = flight.differs(steps.get(point, []), requests.get(point, []))
            yield point, wrong and (f'{wrong}\n  settings {self.settings}\n  cost {self.cost}\n'
                                    f'  trace {self.traces[point]}')

    def differs(self, inflight):
        return next((wrong for _, wrong in self.differences(inflight) if wrong), None)


def worth_flying(cls, seeds, more, tally):
    """All configurations of the seeds, then further ones that have the events that the tally lacks."""
    for seed in seeds:
        yield seed, Configuration(cls, seed)
    for seed in range(seeds.stop, seeds.stop + (MOST_MORE if more else 0)):
        lacks = tally.lacks(cls)
        if not lacks:
            return
        drawn = Configuration(cls, seed)
        if any(getattr(drawn.tally, name) for name in lacks):
            yield seed, drawn


def compare_family(inflight, cls, seeds, more):
    """The tally of the comparison, and a complaint or None."""
    tally = Tally()
    for seed, drawn in worth_flying(cls, seeds, more, tally):
        wrong = drawn.differs(inflight)
        if wrong:
            return tally, f'configuration {seed}: {wrong}'
        tally += drawn.tally
    return tally, tally.complaint(cls) if more else None


def without_oracle(source):
    presets = {os.path.splitext(name)[0]
               for name in os.listdir(os.path.join(source, 'configs', 'serving'))}
    return sorted(presets - {cls.preset for cls in schedulers.families()} - idle.NONE_YET)


def configurations(text):
    """The range of seeds, and whether more may be drawn."""
    first, to, last = text.partition('-')
    return (range(int(first), int(last) + 1), False) if to else (range(int(first)), True)


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    inflight, source = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    seeds, more = configurations(sys.argv[3] if len(sys.argv) > 3 else '10')
    os.environ['INFLIGHT_DATA'] = source
    n_failures = 0
    print(f'no slow scheduler yet: {", ".join(sorted(idle.NONE_YET))}')
    for preset in without_oracle(source):
        print(f'FAILED: {preset} has no slow scheduler')
        n_failures += 1
    for cls in schedulers.families():
        if sys.argv[4:] and cls.preset not in sys.argv[4:]:
            continue
        tally, wrong = compare_family(inflight, cls, seeds, more)
        name = cls.preset + getattr(cls, 'beside', '')
        print(f'FAILED: {name}, {wrong}' if wrong else f'{name}: {tally}, the same')
        n_failures += wrong is not None
    sys.exit(n_failures > 0)


if __name__ == '__main__':
    main()
