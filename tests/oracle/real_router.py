#!/usr/bin/env python3
"""SGLang's installed gateway against the rule that prefix-tree is compared with (PrefixTree in routers.py): two to five stub
workers and the gateway on 127.0.0.1, requests sent and answered one at a time, and the same worker for each.

usage: real_router.py [RUNS]

Needs `pip install sglang-router` (0.3.2 was compared); exits with 77 where it is missing.
"""

import http.client
import http.server
import importlib.util
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

import routers

WAIT_S = 20


class Worker(http.server.ThreadingHTTPServer):
    """Answers what gateways ask of a worker; a request to generate is noted and kept until it is let go."""
    daemon_threads = True

    def __init__(self, number, came, handler):
        super().__init__(('127.0.0.1', 0), handler)
        self.number, self.came = number, came
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f'http://127.0.0.1:{self.server_port}'


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'

    def log_message(self, *args):
        pass

    def answer(self, content):
        body = json.dumps(content).encode()
        self.send_response(200)
        self.send_header('Content-Type', 'application/json')
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer({'model_path': 'stub', 'served_model_name': 'stub', 'is_generation': True, 'status': 'ok',
                     'object': 'list', 'data': [{'id': 'stub', 'object': 'model'}]})

    def asked(self):
        return json.loads(self.rfile.read(int(self.headers['Content-Length'])))

    def keep(self, text):
        go = threading.Event()
        self.server.came(text, self.server.number, go)
        go.wait(WAIT_S)

    def do_POST(self):
        self.keep(self.asked()['text'])
        self.answer({'text': 'x', 'meta_info': {}})


def by_prefix(setting):
    return ['--policy', 'cache_aware', '--cache-threshold', str(setting['min_match_frac']),
            '--balance-abs-threshold', str(setting['balance_abs']), '--balance-rel-threshold', str(setting['balance_rel'])]


class Gateway:
    module, path = 'sglang_router', '/generate'

    def __init__(self, workers, options):
        with socket.socket() as free, socket.socket() as metrics:
            free.bind(('127.0.0.1', 0))
            metrics.bind(('127.0.0.1', 0))
            self.port, metrics_port = free.getsockname()[1], metrics.getsockname()[1]
        command = [sys.executable, '-m', f'{self.module}.launch_router', '--host', '127.0.0.1', '--port', str(self.port),
                   '--prometheus-host', '127.0.0.1', '--prometheus-port', str(metrics_port), *options,
                   '--worker-startup-timeout-secs', '30', '--log-level', 'error',
                   '--worker-urls', *(worker.url for worker in workers)]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def post(self, text, headers):
        """Ends with the gateway, at the latest."""
        try:
            return self.ask(text, headers)
        except OSError:
            return None

    def body(self, text):
        return {'text': text}

    def ask(self, text, headers):
        connection = http.client.HTTPConnection('127.0.0.1', self.port, timeout=WAIT_S)
        connection.request('POST', self.path, json.dumps(self.body(text)).encode(),
                           {'Content-Type': 'application/json', **headers})
        answer = connection.getresponse()
        answer.read()
        return answer.status

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()


class Trial:
    """Requests are sent one at a time, so that the gateway's counts are known."""
    gateway_class, handler = Gateway, Handler

    def __init__(self, n_workers, options):
        self.lock, self.seen = threading.Condition(), {}
        self.workers = [Worker(k, self.came, self.handler) for k in range(n_workers)]
        self.gateway = self.gateway_class(self.workers, options)
        self.senders = {}

    def came(self, text, number, go):
        with self.lock:
            self.seen[text] = number, go
            self.lock.notify_all()

    def send(self, i, text, headers=None):
        self.senders[i] = threading.Thread(target=self.gateway.post, args=(text, headers or {}), daemon=True)
        self.senders[i].start()
        with self.lock:
            if not self.lock.wait_for(lambda: text in self.seen, WAIT_S):
                raise SystemExit(f'request {i} came to no worker within {WAIT_S} s')
            return self.seen[text][0]

    def end(self, i, text):
        self.seen[text][1].set()
        self.senders[i].join(WAIT_S)

    def wait_until_ready(self):
        for _ in range(WAIT_S * 10):
            try:
                connection = http.client.HTTPConnection('127.0.0.1', self.gateway.port, timeout=1)
                connection.request('GET', '/readiness')
                if connection.getresponse().status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.1)
        raise SystemExit('the gateway is not ready')

    def stop(self):
        self.gateway.stop()
        for worker in self.workers:
            worker.shutdown()


def text_of(log, i):
    """A character of three bytes a token; what is a request's own is one character that no other has."""
    tokens = (log.token(i, at) for at in range(log.of[i].prompt))
    return ''.join(chr(0x3400 + 80 * token[1] + token[2]) if token[0] == 'group' else chr(0x4e00 + i)
                   for token in tokens)


def run(number, trial_class, rule, **further):
    rng = random.Random(number)
    setting = {'replicas': rng.choice([2, 3, 5]), 'min_match_frac': rng.choice([0.3, 0.5]),
               'balance_abs': rng.choice([1, 3, 64]), 'balance_rel': rng.choice([1.0, 1.5]), 'seed': 0,
               'block_tokens': 1, 'block_tokens_of_router': 1, 'num_blocks': 1, **further}
    trial = trial_class(setting['replicas'], by_prefix(setting))
    log, live, order = routers.Log([], setting), [], []
    try:
        trial.wait_until_ready()
        for i in range(60 + setting['replicas']):
            for j in list(live):
                if len(order) == setting['replicas'] and rng.random() < 0.15:
                    trial.end(j, text_of(log, j))
                    live.remove(j)
                    log.of[j] = log.of[j]._replace(end=i)
            prompt, group = rng.randint(2, 80), rng.choice([0, 1, 2, 3])
            if len(order) < setting['replicas']:
                group = 0
            shared = rng.randint(1, prompt) if group else 0
            log.of.append(routers.Request(i, i, i, 10 ** 9, None, prompt, 1, group, shared, 0))
            worker = trial.send(i, text_of(log, i))
            # The first requests, which share nothing, visit the workers in the gateway's own order.
            if worker not in order:
                order.append(worker)
            where = order.index(worker)
            expected = rule.pick(log, i)
            log.of[i] = log.of[i]._replace(replica=where)
            live.append(i)
            if where != expected:
                sys.exit(f'run {number}, request {i}: worker {where} was chosen, expected {expected}\n{setting}\n'
                         + '\n'.join(map(str, log.of)))
        for j in live:
            trial.end(j, text_of(log, j))
    finally:
        trial.stop()
    return len(log.of)


def main():
    if importlib.util.find_spec('sglang_router') is None:
        print('no module sglang_router')
        sys.exit(77)
    os.environ['NO_PROXY'] = '127.0.0.1'
    n_runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    n = sum(run(number, Trial, routers.PrefixTree) for number in range(n_runs))
    print(f'sglang_router: {n} requests of {n_runs} runs')


if __name__ == '__main__':
    main()
