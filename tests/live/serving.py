"""What the tests of `inflight serve` share: a server in a folder of its own, and a plain HTTP client on sockets."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

SIMPLE = """
serving: {preset: vllm-v1-sync, max_model_len: 2048, kv: {num_blocks: 4000}}
cost: {model: linear, step_s: 0.002}
"""

# Room for as many requests as a test sends: that of a server is filled with garbage where malloc is told to.
FEW = ('--set', 'live.limits.recorded=100000')


class Server:
    """A server with the configuration `text`; ends with the block."""

    def __init__(self, program, text, *options, env=None):
        self.program, self.folder = program, tempfile.mkdtemp(prefix='serve-')
        self.config, self.out = os.path.join(self.folder, 'config.yaml'), os.path.join(self.folder, 'out')
        with open(self.config, 'w') as file:
            file.write(text)
        self.log = open(os.path.join(self.folder, 'log'), 'w+')
        self.process = subprocess.Popen(
            [program, 'serve', self.config, '--port', '0', '-o', self.out, *FEW, *options],
            stdout=self.log, stderr=subprocess.STDOUT, env=env)
        self.port = self.wait_for_port()

    def wait_for_port(self):
        for _ in range(1800):
            found = re.search(r'serving at http://[^:]+:(\d+)/', self.said())
            if found:
                return int(found.group(1))
            if self.process.poll() is not None:
                break
            time.sleep(0.05)
        raise AssertionError('the server did not start: ' + self.said())

    def said(self):
        with open(self.log.name) as file:
            return file.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def stop(self, number=signal.SIGTERM):
        """Ends the server; its exit status."""
        self.process.send_signal(number)
        return self.process.wait(timeout=60)

    def rss_kib(self):
        with open('/proc/%d/status' % self.process.pid) as file:
            return int(re.search(r'VmRSS:\s*(\d+)', file.read()).group(1))

    def file(self, name):
        with open(os.path.join(self.out, name), 'rb') as file:
            return file.read()

    def again(self, *options):
        """Flies the recording; the folder of the run."""
        out = os.path.join(self.folder, 'again')
        run = subprocess.run([self.program, 'run', os.path.join(self.out, 'config.yaml'), '-q', '-o', out, *options],
                             capture_output=True, text=True, timeout=300)
        assert run.returncode == 0, run.stderr
        return out

    def connect(self, timeout=30):
        return socket.create_connection(('127.0.0.1', self.port), timeout=timeout)

    def send(self, method, path, body=None, headers=None, timeout=30):
        """A connected socket on which the request was sent."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b''
        lines = ['%s %s HTTP/1.1' % (method, path), 'Host: test']
        fields = {'Content-Type': 'application/json', **(headers or {})}
        if body is not None:
            fields.setdefault('Content-Length', str(len(data)))
        lines += ['%s: %s' % field for field in fields.items() if field[1] is not None]
        link = self.connect(timeout)
        link.sendall('\r\n'.join(lines).encode() + b'\r\n\r\n' + data)
        return link

    def ask(self, method, path, body=None, headers=None, timeout=30):
        """(status, headers, body)"""
        with self.send(method, path, body, {'Connection': 'close', **(headers or {})}, timeout) as link:
            return read_answer(link)

    def post(self, path, body, headers=None, timeout=30):
        return self.ask('POST', path, body, headers, timeout)

    def stream(self, body, path='/v1/completions', timeout=60):
        """The events of a streamed answer, parsed; '[DONE]' as it is."""
        status, _, text = self.post(path, {**body, 'stream': True}, timeout=timeout)
        assert status == 200, (status, text)
        return events(text)


def events(text):
    found = []
    for line in text.decode().split('\n\n'):
        if line:
            assert line.startswith('data: '), line
            found.append(line[6:] if line[6:] == '[DONE]' else json.loads(line[6:]))
    return found


def read_all(link):
    got = []
    while True:
        try:
            part = link.recv(1 << 16)
        except ConnectionResetError:
            break
        if not part:
            break
        got.append(part)
    return b''.join(got)


def unchunk(data):
    out = []
    while data:
        size, _, data = data.partition(b'\r\n')
        n = int(size, 16)
        if n == 0:
            break
        out.append(data[:n])
        assert data[n:n + 2] == b'\r\n', data[n:n + 20]
        data = data[n + 2:]
    return b''.join(out)


def read_answer(link):
    head, _, body = read_all(link).partition(b'\r\n\r\n')
    lines = head.decode('latin-1').split('\r\n')
    status = int(lines[0].split()[1]) if lines[0] else 0
    headers = {line.split(':', 1)[0].lower(): line.split(':', 1)[1].strip() for line in lines[1:] if ':' in line}
    if headers.get('transfer-encoding') == 'chunked':
        body = unchunk(body)
    return status, headers, body
