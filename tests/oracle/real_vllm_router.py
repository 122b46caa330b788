#!/usr/bin/env python3
"""The router of the vLLM project, as installed, against inflight's rules: it and two to five stub workers on 127.0.0.1, requests
sent and answered one at a time.

usage: real_vllm_router.py [RUNS]

Needs `pip install vllm-router` (0.1.17 was compared); exits with 77 where it is missing. Its rule cache_aware has the workers turn
prompts to tokens, and routes by load alone where they do not.
"""

import importlib.util
import os
import random
import sys

import real_router
import routers


class Handler(real_router.Handler):
    def do_POST(self):
        asked = self.asked()
        if self.path == '/tokenize':
            tokens = [ord(character) for character in asked['prompt']]
            self.answer({'tokens': tokens, 'count': len(tokens), 'max_model_len': 1 << 20})
        elif self.path == '/v1/completions':
            self.keep(asked['prompt'])
            self.answer({'id': 'x', 'object': 'text_completion', 'created': 0, 'model': 'stub',
                         'choices': [{'index': 0, 'text': 'x', 'finish_reason': 'length'}]})
        else:
            self.send_error(404)


class Gateway(real_router.Gateway):
    module, path = 'vllm_router', '/v1/completions'

    def body(self, text):
        return {'model': 'stub', 'prompt': text}


class Trial(real_router.Trial):
    gateway_class, handler = Gateway, Handler


# Each rule: of the requests before, as lists [worker, session, in flight], the number of workers and the session of the
# next request, the workers that it may go to.

def turns(before, n, session):
    order = [worker for worker, _, _ in before[:n]]
    return [order[len(before) % n]] if len(before) >= n else [k for k in range(n) if k not in order]


def two_choices(before, n, session):
    """Not to a worker that has more requests than each other one."""
    counts = [sum(there for worker, _, there in before if worker == k) for k in range(n)]
    return [k for k in range(n) if any(counts[k] <= counts[other] for other in range(n) if other != k)]


def same_session(before, n, session):
    return [worker for worker, of, _ in before if of == session][-1:] or list(range(n))


def anywhere(before, n, session):
    return list(range(n))


RULES = {'round_robin': turns, 'power_of_two': two_choices, 'consistent_hash': same_session, 'random': anywhere}


def run(policy, number):
    rng = random.Random(number)
    n = rng.choice([2, 3, 5])
    trial, before = Trial(n, ['--policy', policy]), []
    try:
        trial.wait_until_ready()
        for i in range(80):
            for j, request in enumerate(before):
                if request[2] and rng.random() < 0.1:
                    trial.end(j, str(j))
                    request[2] = False
            session = rng.randint(1, 12)
            may = RULES[policy](before, n, session)
            worker = trial.send(i, str(i), {'X-Session-Id': f'session {session}'})
            if worker not in may:
                sys.exit(f'{policy}, run {number}, request {i}: worker {worker} was chosen, expected one of {may}\n{before}')
            before.append([worker, session, True])
        for j, request in enumerate(before):
            if request[2]:
                trial.end(j, str(j))
    finally:
        trial.stop()
    if policy == 'random' and len({worker for worker, _, _ in before}) < n:
        sys.exit(f'random, run {number}: only some of {n} workers were chosen in {len(before)} requests')
    return len(before)


def main():
    if importlib.util.find_spec('vllm_router') is None:
        print('no module vllm_router')
        sys.exit(77)
    os.environ['NO_PROXY'] = '127.0.0.1'
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    n = sum(real_router.run(number, Trial, routers.PrefixTree, holder='fewest') for number in range(n_runs))
    print(f'vllm_router, cache_aware: {n} requests of {n_runs} runs')
    for policy in RULES:
        n = sum(run(policy, number) for number in range(n_runs))
        print(f'vllm_router, {policy}: {n} requests of {n_runs} runs')


if __name__ == '__main__':
    main()
