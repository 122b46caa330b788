#!/usr/bin/env python3
"""The worked policies, built against the installed headers alone, fly random workloads.

Each flight must give the same bytes with steady runs on, off and checked, and the same steps and requests
as a slow model (model.py, and tests/oracle for published systems). A plain form of a built-in module must
give the same bytes as the module.

usage: contract.py INFLIGHT INCLUDE_DIR SOURCE_ROOT
"""

import os
import random
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, '..', 'oracle'))

import fair                                                             # noqa: E402
import model                                                            # noqa: E402
import preemptive                                                       # noqa: E402
import reserving                                                        # noqa: E402
from compare import (difference, expected_request, read, request_of,    # noqa: E402
                     step_of, write_traces)
from machine import Request, fly                                        # noqa: E402

N_TRACES, N_REQUESTS = 3, 250
COST = {'step': 7, 'prefill_token': 1, 'decode_seq': 1, 'context_token': 0}
KV = {'block_tokens': 4, 'num_blocks': 60, 'host_blocks': 60, 'max_model_len': 80, 'watermark_frac': 0.05}
MODES = {'on': {}, 'off': {'serving.steady_runs': 'false'}, 'checked': {'serving.check_steady': 'true'}}
REPORTS = ['requests.csv', 'steps.csv', 'summary.csv']


class Flight:
    """A name, configuration settings, a slow model, the events that its flights must contain, and, for a
    plain form of a built-in module, the settings that name the module instead."""

    def __init__(self, name, sets, machine, happens, gap_ms=40, built_in=None):
        self.name, self.sets, self.machine = name, sets, machine
        self.happens, self.gap_ms, self.built_in = happens, gap_ms, built_in

    def traces(self):
        rng = random.Random(self.name)
        return [[self.row(rng, at) for at in self.stamps(rng)] for _ in range(N_TRACES)]

    def stamps(self, rng):
        """Bursts, and pauses in which the backlog drains."""
        at = 0
        for i in range(N_REQUESTS):
            at += round(rng.expovariate(1 / self.gap_ms)) * (10 if i % 50 == 0 else 1)
            yield at

    def row(self, rng, at):
        client = rng.choice([0, 0, 0, 1, 1, 2])
        more = {'ttft_slo_s': rng.choice([None, 0.2, 1, 4]),
                'tpot_slo_s': rng.choice([None, 0.015, 0.03, 0.2])}
        return at, rng.randint(1, 30), rng.randint(5, 45), rng.randint(0, 2), client, more


def on_model(settings, *modules, fate='recompute'):
    return lambda: model.Machine({**KV, **settings}, *modules, fate=fate)


DECODE_FIRST = {'serving.batching': '{policy: decode-first, max_seqs: 24, most_tokens: 40, least_tokens: 3, '
                                    'more_tokens: 2}'}
DECODE_FIRST_SETTINGS = {'max_seqs': 24, 'most_tokens': 40, 'least_tokens': 3, 'more_tokens': 2}
PROMPTS_FIRST = {'serving.batching': '{policy: prompts-first}'}
FCFS = {'serving.order': '{policy: fcfs}'}
FITS = {'serving.admit': '{policy: prompt-fits, watermark_frac: 0.05}'}
TAIL = {'serving.preempt': '{policy: tail, fate: recompute}'}
BUCKET = 'policy: token-bucket, rate_rps: 5, burst: 4'
BUCKET_SETTINGS = {**DECODE_FIRST_SETTINGS, 'rate_rps': 5, 'burst': 4}
QUANTUM = {'max_seqs': 4, 'budget': 2048, 'quantum': 10, 'token': 1, 'levels': 20, 'starve_steps': 100,
           'starve': 300, 'host_free': 0.125, 'keep': 2, 'look_ahead': 3}


DRR = {'max_seqs': 12, 'between': 3}
LIGHTLLM = {'max_seqs': 1000, 'between': 3, 'router_token_ratio': 0.5, 'router_max_new_token_len': 8}


def drr_sets(policy):
    return {'serving.preset': 'vtc-drr', 'serving.order': f'{{policy: {policy}}}', 'serving.batching.max_seqs': 12,
            'serving.batching.decodes_between': 3}


def peak_sets(policy):
    return {'serving.preset': 'lightllm', 'serving.batching.decodes_between': 3,
            'serving.admit': f'{{policy: {policy}, busy_frac: 0.5, likely_tokens: 8, first_counts: true}}'}


def mlfq_sets(policy):
    order = f'{{policy: {policy}, quantum_s: 0.01, prefill_token_s: 0.001, starve_steps: 100, starve_s: 0.3}}'
    return {'serving.preset': 'fastserve', 'serving.order': order, 'serving.batching.max_seqs': 4,
            'serving.admit.host_free_frac': 0.125, 'serving.preempt.keep_free_blocks': 2,
            'serving.preempt.look_ahead': 3}


FLIGHTS = [
    Flight('decode-first', {**DECODE_FIRST, **FCFS, **FITS, **TAIL},
           on_model(DECODE_FIRST_SETTINGS, model.DecodeFirst, model.Fcfs, [model.PromptFits], model.Tail),
           ['n_slow']),
    Flight('decode-first that swaps',
           {**DECODE_FIRST, **FCFS, **FITS, 'serving.preempt': '{policy: tail, fate: swap}'},
           on_model(DECODE_FIRST_SETTINGS, model.DecodeFirst, model.Fcfs, [model.PromptFits], model.Tail,
                    fate='swap'), ['n_slow']),
    Flight('slack', {**DECODE_FIRST, 'serving.order': '{policy: slack}', **FITS, **TAIL},
           on_model(DECODE_FIRST_SETTINGS, model.DecodeFirst, model.Slack, [model.PromptFits], model.Tail), []),
    Flight('token-bucket', {**DECODE_FIRST, **FCFS, 'serving.admit': f'{{{BUCKET}}}', **TAIL},
           on_model(BUCKET_SETTINGS, model.DecodeFirst, model.Fcfs, [model.TokenBucket], model.Tail),
           ['n_held_back']),
    Flight('token-bucket beside prompt-fits',
           {**DECODE_FIRST, **FCFS, **TAIL,
            'serving.admit': f'[{{{BUCKET}}}, {{policy: prompt-fits, watermark_frac: 0.05}}]'},
           on_model(BUCKET_SETTINGS, model.DecodeFirst, model.Fcfs, [model.TokenBucket, model.PromptFits],
                    model.Tail), ['n_held_back']),
    Flight('prompt-fits beside token-bucket',
           {**DECODE_FIRST, **FCFS, **TAIL,
            'serving.admit': f'[{{policy: prompt-fits, watermark_frac: 0.05}}, {{{BUCKET}}}]'},
           on_model(BUCKET_SETTINGS, model.DecodeFirst, model.Fcfs, [model.PromptFits, model.TokenBucket],
                    model.Tail), ['n_held_back']),
    Flight('most-served', {**DECODE_FIRST, **FCFS, **FITS, 'serving.preempt': '{policy: most-served}'},
           on_model(DECODE_FIRST_SETTINGS, model.DecodeFirst, model.Fcfs, [model.PromptFits],
                    model.MostServed), []),
    Flight('least-charged, most-served',
           {**PROMPTS_FIRST, 'serving.order': '{policy: least-charged}',
            'serving.admit': '{policy: prompt-fits, watermark_frac: 0}', 'serving.preempt': '{policy: most-served}'},
           on_model({'watermark_frac': 0}, model.PromptsFirst, model.LeastCharged, [model.PromptFits], model.MostServed),
           ['n_undone']),
    Flight('plain-mlfq', mlfq_sets('plain-mlfq'),
           lambda: preemptive.FastServe({**KV, **QUANTUM}), [], gap_ms=60, built_in=mlfq_sets('mlfq')),
    Flight('plain-drr', drr_sets('plain-drr'), lambda: fair.Drr({**KV, **DRR}), [], gap_ms=90,
           built_in=drr_sets('drr')),
    Flight('plain-drr, most-served',
           {**PROMPTS_FIRST, 'serving.order': '{policy: plain-drr}',
            'serving.admit': '{policy: prompt-fits, watermark_frac: 0}', 'serving.preempt': '{policy: most-served}'},
           on_model({'watermark_frac': 0}, model.PromptsFirst, model.Drr, [model.PromptFits], model.MostServed),
           ['n_undone'], built_in={'serving.order': '{policy: drr}'}),
    Flight('plain-peak', peak_sets('plain-peak'), lambda: reserving.LightLLM({**KV, **LIGHTLLM}), [], gap_ms=90,
           built_in=peak_sets('peak-estimate')),
]


def build(include, source, folder):
    examples = os.path.join(source, 'policies', 'examples')
    names = [os.path.join(examples, name + '.c') for name in
             ('slack', 'token_bucket', 'decode_first', 'plain_mlfq', 'most_served', 'least_charged')]
    plugins = []
    own = [os.path.join(HERE, name + '.c') for name in ('prompts_first', 'plain_drr', 'plain_peak')]
    for name in names + own:
        plugin = os.path.join(folder, os.path.basename(name)[:-2] + '.so')
        subprocess.run(['cc', '-std=c17', '-Wall', '-Wextra', '-Wpedantic', '-Werror', '-O1', '-shared', '-fPIC',
                        '-fvisibility=hidden', '-I' + include, name, '-o', plugin], check=True)
        plugins += ['--plugin', plugin]
    return plugins


def run(inflight, plugins, folder, traces, sets, out):
    config = os.path.join(folder, 'config.yaml')
    with open(config, 'w') as text:
        text.write(f'workload: {{trace: {traces[0]}}}\n')
    sets = {
        'serving.max_model_len': KV['max_model_len'], 'serving.kv.num_blocks': KV['num_blocks'],
        'serving.kv.block_tokens': KV['block_tokens'], 'serving.kv.swap_gib': 1,
        'cost.model': 'linear', 'cost.step_s': COST['step'] / 1000,
        'cost.prefill_token_s': COST['prefill_token'] / 1000,
        'cost.decode_seq_s': COST['decode_seq'] / 1000,
        'output.steps': 'true', 'sweep.workload.trace': '[' + ', '.join(traces) + ']', **sets,
    }
    command = [inflight, 'run', config, '--quiet', '-o', os.path.join(folder, out), *plugins]
    for key, value in sets.items():
        command += ['--set', f'{key}={value}']
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return done.stderr.strip() or f'exit code {done.returncode}' if done.returncode else None


def different_bytes(folder, one, other):
    for report in REPORTS:
        with open(os.path.join(folder, one, report), 'rb') as a, \
             open(os.path.join(folder, other, report), 'rb') as b:
            if a.read() != b.read():
                return f'{report} is not the same in {one} and {other}'
    return None


def against_model(flight, folder, traces):
    """The first difference or None, and the counts of events."""
    steps, requests = read(folder, 'steps.csv'), read(folder, 'requests.csv')
    happened = {name: 0 for name in [*flight.happens, 'preemptions']}
    for point, rows in enumerate(traces):
        machine = flight.machine()
        own = [Request(i, *row[:-1], **row[-1]) for i, row in enumerate(rows)]
        expected, failure = fly(machine, own, COST)
        if failure:
            return f'the model {failure}', happened
        wrong = difference(expected, [step_of(row) for row in steps[point]])
        if wrong:
            return f'trace {point}, step {wrong[0]}: {wrong[1]}', happened
        by_id = sorted(requests[point], key=lambda row: int(row['request_id']))
        wrong = difference([expected_request(r) for r in own], [request_of(row) for row in by_id])
        if wrong:
            return f'trace {point}, request {wrong[0]}: {wrong[1]}', happened
        happened['preemptions'] += sum(step['preempted'] for step in expected)
        for name in flight.happens:
            happened[name] += getattr(machine, name)
    return None, happened


def judge(flight, inflight, plugins, folder):
    """A complaint or None, and the counts of events."""
    traces = flight.traces()
    names = write_traces(folder, traces)
    for mode, more in MODES.items():
        wrong = run(inflight, plugins, folder, names, {**flight.sets, **more}, 'out' if mode == 'on' else mode)
        wrong = wrong or (mode != 'on' and different_bytes(folder, 'out', mode))
        if wrong:
            return f'steady runs {mode}: {wrong}', {}
    if flight.built_in:
        wrong = run(inflight, plugins, folder, names, {**flight.sets, **flight.built_in}, 'built-in')
        wrong = wrong or different_bytes(folder, 'out', 'built-in')
        if wrong:
            return wrong, {}
    wrong, happened = against_model(flight, folder, traces)
    idle = [name for name, n in happened.items() if n < 10]
    return wrong or (f'too seldom: {idle}' if idle else None), happened


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    inflight, include, source = (os.path.abspath(name) for name in sys.argv[1:4])
    n_failures = 0
    with tempfile.TemporaryDirectory() as folder:
        plugins = build(include, source, folder)
        for flight in FLIGHTS:
            if sys.argv[4:] and flight.name not in sys.argv[4:]:
                continue
            wrong, happened = judge(flight, inflight, plugins, folder)
            print(f'FAILED: {flight.name}: {wrong}' if wrong else f'{flight.name}: {happened}, the same', flush=True)
            n_failures += wrong is not None
    sys.exit(n_failures > 0)


if __name__ == '__main__':
    main()
