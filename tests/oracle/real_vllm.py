#!/usr/bin/env python3
"""Random workloads, flown by inflight and by vLLM's own scheduler: every step and every request must be the same.

usage: real_vllm.py INFLIGHT SOURCE [CONFIGS [PRESET...]]

Skips (exit code 77) unless `import vllm` and torch are found. A preset is compared with the versions that it stands
for. CONFIGS is a number of settings to draw, 20 workloads each, or a range FIRST-LAST.
"""

import os
import sys

try:
    import vllm_engine
except ImportError as missing:
    print(f'skipped: {missing}')
    sys.exit(77)

import compare
from cached import Cached
from newest import Rules
from schedulers import VllmV1, random_case, rng_of


class Case:
    """A preset, the versions of vLLM with this scheduler, and the settings drawn for it."""
    asynchronous = priority = False
    last = (99, 0)
    keys = VllmV1.keys
    beside = ''
    preempts, swaps, fails_at_most = True, False, 0
    watermarks = [0]

    @classmethod
    def draw(cls, rng):
        return {**VllmV1.draw(rng), 'watermark_frac': rng.choice(cls.watermarks), 'cache': rng.random() < 0.5}

    @staticmethod
    def columns(rng, prompt, output):
        """If max_tokens exceeds the output, the answer ends early."""
        return {**Cached.columns(rng, prompt, output), 'max_tokens': output + rng.choice([0] * 5 + [3])}

    @staticmethod
    def more_sets(settings):
        return {'serving.kv.prefix_cache': 'hash' if settings['cache'] else 'none'}


class V1(Case):
    preset = 'vllm-v1-2026-08'
    first, last = (0, 24), (0, 30)
    watermarks = [0, 0, 0.1, 0.3]


class V1Async(V1):
    preset = 'vllm-v1-2026-08-async'
    asynchronous = True


class V1Priority(V1):
    preset = 'vllm-v1-2026-08-priority'
    priority = True


class V1April2026(Case):
    preset = 'vllm-v1-2026-04'
    first, last = (0, 19), (0, 20)


class V1May2025(Case):
    preset = 'vllm-v1-2025-05'
    first, last = (0, 8), (0, 9)


class V1Sync(Case):
    preset = 'vllm-v1-sync'
    first = (0, 33)
    watermarks = V1.watermarks
    keys = Rules.keys

    @classmethod
    def draw(cls, rng):
        return {**Rules.draw(rng), **super().draw(rng), 'threshold': rng.choice([0, 1, 4, 9]), 'max_active': 0}


class V1Seats(V1Sync):
    """With fewer seats than sequences."""
    beside = ', fewer seats'

    @classmethod
    def draw(cls, rng):
        return {**super().draw(rng), 'max_seqs': 4, 'max_active': rng.choice([1, 2, 3])}


class V1PrioritySync(V1Sync):
    preset = 'vllm-v1-priority'
    beside = ', synchronous'
    priority = True

    @staticmethod
    def more_sets(settings):
        return {**Case.more_sets(settings), 'serving.in_flight.ahead': '0'}


class V1Now(V1Sync):
    preset = 'vllm-v1'
    asynchronous = True


class V1November2026(V1Now):
    preset = 'vllm-v1-2026-11'


class V1PriorityNow(V1Now):
    preset = 'vllm-v1-priority'
    priority = True


CASES = [V1, V1Async, V1Priority, V1April2026, V1May2025, V1Sync, V1Seats, V1PrioritySync, V1Now, V1November2026,
         V1PriorityNow]


def version():
    return tuple(int(part) for part in vllm_engine.VERSION.split('+')[0].split('.')[:2])


class RealFlight(compare.Flight):
    """A workload as vLLM's scheduler flies it."""

    def __init__(self, case, settings, cost, rows):
        self.requests = [compare.Request(i, *row[:-1], **row[-1]) for i, row in enumerate(rows)]
        engine = vllm_engine.Engine(settings, case.asynchronous, case.priority)
        self.steps, self.ends = vllm_engine.fly(engine, self.requests, cost)
        self.fails = False


def compare_case(inflight, case, seeds):
    """Counts equal and different workloads, and prints the first differences."""
    n_same = n_wrong = 0
    tally = compare.Tally()
    for seed in seeds:
        drawn = compare.Configuration(case, seed, RealFlight)
        tally += drawn.tally
        for at, wrong in drawn.differences(inflight):
            n_same, n_wrong = n_same + (wrong is None), n_wrong + (wrong is not None)
            if wrong and n_wrong <= int(os.environ.get('SHOW', 1)):
                print(f'  {case.preset}, configuration {seed}, workload {at}: {wrong}')
    print(f'{case.preset}{case.beside} against vLLM {vllm_engine.VERSION}: {tally}; {n_same} the same, {n_wrong} not', flush=True)
    return n_wrong


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    inflight, source = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
    seeds, _ = compare.configurations(sys.argv[3] if len(sys.argv) > 3 else '10')
    os.environ['INFLIGHT_DATA'] = source
    cases = [case for case in CASES if case.preset in sys.argv[4:] or
             not sys.argv[4:] and case.first <= version() <= case.last]
    if not cases:
        print(f'skipped: no preset stands for vLLM {vllm_engine.VERSION}')
        sys.exit(77)
    n_wrong = sum(compare_case(inflight, case, seeds) for case in cases)
    sys.exit(n_wrong > 0)


if __name__ == '__main__':
    main()
