#!/usr/bin/env python3
"""The server's own faults, when they are asked for; keys; a full disk; an address that is taken.

usage: serve_faults.py INFLIGHT
"""

import json
import os
import resource
import select
import subprocess
import sys
import tempfile
import time

from serving import FEW, SIMPLE, Server


def starts(program):
    """It is not ready for as long as it is told to, and then is."""
    with Server(program, SIMPLE + 'live: {faults: {start_s: 3600}}\n', '-q') as server:
        assert server.ask('GET', '/health')[0] == 503
        assert server.post('/v1/completions', {'prompt': 'x'})[0] == 503
    with Server(program, SIMPLE + 'live: {faults: {start_s: 0.5}}\n', '-q') as server:
        while server.ask('GET', '/health')[0] == 503:
            time.sleep(.05)
        assert server.ask('GET', '/health')[0] == 200
    print('ok it starts')


def faults(program):
    text = SIMPLE + 'live: {faults: {error_frac: 0.3}, api_key: secret}\n'
    with Server(program, text, '-q') as server:
        key = {'Authorization': 'Bearer secret'}
        for wrong in (None, {'Authorization': 'Bearer secre'}, {'Authorization': 'Bearer secret2'},
                      {'Authorization': 'secret'}, {'Authorization': 'Bearer '}):
            assert server.post('/v1/completions', {'prompt': 'x'}, wrong)[0] == 401, wrong
        statuses = [server.post('/v1/completions', {'prompt': 'x', 'max_tokens': 1}, key)[0] for _ in range(200)]
        # 0.3 of 200 draws: four standard deviations are 26.
        assert set(statuses) == {200, 500} and 34 <= statuses.count(500) <= 86, statuses.count(500)
        assert server.stop() == 0
        assert b'secret' not in server.file('config.yaml')
        assert server.file('requests.csv').count(b'\n') == 1 + statuses.count(200)
        print('ok errors are injected, %d of 200' % statuses.count(500))


def drops(program):
    with Server(program, SIMPLE + 'live: {faults: {drop_frac: 1}}\n', '-q') as server:
        link = server.send('POST', '/v1/completions', {'prompt': 'x', 'max_tokens': 9, 'stream': True})
        got = b''
        while part := link.recv(4096):
            got += part
        assert b'[DONE]' not in got and b' 200 ' in got, got
        assert server.stop() == 0
        assert b',aborted,' in server.file('requests.csv')
        print('ok streams are dropped')


def stalls(program):
    """Nothing comes while it stalls: a stream that has a token each 2 ms has gaps of the stall's length."""
    text = SIMPLE + 'live: {faults: {stall_every_s: 1, stall_s: 0.5}}\n'
    with Server(program, text, '-q') as server:
        link = server.send('POST', '/v1/completions', {'prompt': 'x', 'max_tokens': 1500, 'ignore_eos': True, 'stream': True})
        times, part = [], link.recv(65536)
        while part and not part.endswith(b'0\r\n\r\n'):
            times.append(time.monotonic())
            part = link.recv(65536)
        gaps = sorted(after - before for before, after in zip(times, times[1:]))
        assert gaps[-2] > .45, gaps[-5:]
        print('ok it stalls, %.3f s' % gaps[-2])


def dead(program):
    text = SIMPLE + 'cluster: {replicas: 2}\nlive: {faults: {dead_replica: 0}}\n'
    with Server(program, text, '-q') as server:
        links = [server.send('POST', '/v1/completions', {'prompt': 'x', 'max_tokens': 2, 'ignore_eos': True,
                                                         'stream': True}) for _ in range(4)]
        answered = set()
        while len(answered) < 2:  # round-robin: two of them
            found = select.select([link for link in links if link not in answered], [], [], 60)[0]
            assert found, 'a living replica says nothing'
            answered.update(found)
        assert not select.select([link for link in links if link not in answered], [], [], .5)[0]
        for link in links:
            link.close()
        print('ok a dead replica says nothing')


def full_disk(program):
    """What fits stays, in whole rows, and the server says why it ends."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (60000, 60000))

    import signal
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, 'c.yaml')
        with open(config, 'w') as file:
            file.write(SIMPLE)
        out = os.path.join(folder, 'out')
        server = Server.__new__(Server)
        process = subprocess.Popen([program, 'serve', config, '--port', '0', '-q', '-o', out, *FEW], stderr=subprocess.PIPE,
                                   text=True,
                                   preexec_fn=lambda: (limit(), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)))
        line = process.stderr.readline()
        server.port = int(line.split('127.0.0.1:')[1].split('/')[0])
        try:
            for _ in range(200):
                server.post('/v1/completions', {'prompt': 'x' * 40, 'max_tokens': 30, 'ignore_eos': True})
                if process.poll() is not None:
                    break
        except (ConnectionError, OSError, ValueError):
            pass
        status = process.wait(timeout=120)
        said = process.stderr.read()
        assert status == 1 and 'cannot write' in said and said.count('\n') == 1, (status, said)
        for name in ('trace.csv', 'steps.csv', 'requests.csv'):
            with open(os.path.join(out, name), 'rb') as file:
                text = file.read()
            assert text.endswith(b'\n') and len(text) <= 60000, (name, len(text), text[-80:])
            columns = {row.count(b',') for row in text.splitlines()}
            assert len(columns) == 1, (name, columns)
        print('ok a full disk:', said.strip())


def taken(program):
    with Server(program, SIMPLE, '-q') as server:
        run = subprocess.run([program, 'serve', server.config, '--port', str(server.port), '-o',
                              server.folder + '/other'], capture_output=True, text=True, timeout=60)
        assert run.returncode == 1 and 'cannot listen at 127.0.0.1:%d' % server.port in run.stderr, run
        assert json.loads(server.ask('GET', '/version')[2])['version']
        print('ok a port that is taken')


def sweeps(program):
    with tempfile.TemporaryDirectory() as folder:
        config = os.path.join(folder, 'c.yaml')
        with open(config, 'w') as file:
            file.write(SIMPLE + 'sweep: {serving.max_model_len: [512, 1024]}\n')
        run = subprocess.run([program, 'serve', config, '--port', '0', '-o', folder + '/out'], capture_output=True,
                             text=True, timeout=60)
        assert run.returncode == 2 and 'has 2 points, expected one' in run.stderr, run
        print('ok a sweep is refused')


if __name__ == '__main__':
    for test in (starts, faults, drops, stalls, dead, full_disk, taken, sweeps):
        test(sys.argv[1])
