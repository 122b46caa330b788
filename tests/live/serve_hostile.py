#!/usr/bin/env python3
"""Clients that mean no good, or know no better: each gets a clear status, or is disconnected; memory stays bounded,
and a stream beside them has every token.

usage: serve_hostile.py INFLIGHT
"""

import json
import random
import resource
import select
import socket
import sys
import threading
import time

from serving import SIMPLE, Server, read_answer, read_all

CONFIG = SIMPLE + 'live: {limits: {body_kib: 256, header_kib: 16, connections: 400, unsent_kib: 64, bodies_mib: 4, idle_s: 5}}\n'
GIB = 1 << 30


def check(condition, what):
    if not condition:
        raise AssertionError(what)
    print('ok', what)


def refused(answer, status, what):
    check(answer[0] == status, '%s: %d' % (what, status) if answer[0] == status else '%s: %r' % (what, answer))


def huge_body(server):
    """A body of 1 GB is refused by its length, and is not kept."""
    link = server.connect()
    link.sendall(b'POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
                 b'Content-Length: %d\r\n\r\n' % GIB)
    sent, block = 0, b'x' * (1 << 20)
    try:
        while sent < GIB:
            sent += link.send(block)
    except (BrokenPipeError, ConnectionResetError):
        pass
    refused(read_answer(link), 413, 'a body of 1 GiB')
    link = server.send('POST', '/v1/completions', b'', {'Content-Length': None, 'Transfer-Encoding': 'chunked'})
    try:
        for _ in range(64):
            link.sendall(b'%x\r\n' % len(block) + block + b'\r\n')
    except (BrokenPipeError, ConnectionResetError):
        pass
    status = read_answer(link)[0]
    check(status in (413, 0), 'chunks of 64 MiB: %d' % status)
    link = server.send('POST', '/v1/completions', b'', {'Content-Length': '-5'})
    refused(read_answer(link), 400, 'a negative length')
    for length in ('%d' % (256 * 1024 + 1), '1' + 20 * '0'):
        link = server.send('POST', '/v1/completions', b'', {'Content-Length': length}, timeout=2)
        refused(read_answer(link), 413, 'a length of %s bytes, none of which comes' % length)
    whole = BODY + b' ' * (256 * 1024 - len(BODY))
    refused(server.post('/v1/completions', whole), 200, 'the longest body that may be')
    link = server.connect(timeout=2)
    link.sendall(INNER)
    while b'"version"' not in link.recv(1 << 16):
        pass
    for part in (b'POST / HTTP/1.1\r\nContent-', b'length:  ', b'999999999\r', b'\n'):
        link.sendall(part)
        time.sleep(0.05)
    refused(read_answer(link), 413, 'a length that comes in parts, behind another request')
    link = server.connect(timeout=30)
    inner = b'POST / HTTP/1.1\r\nContent-Length: 999999999\r\n\r\n'
    link.sendall(POST + b'Connection: close\r\nContent-Length: %d\r\n\r\n' % (len(BODY) + len(inner)))
    link.sendall(inner + BODY)
    refused(read_answer(link), 400, 'a body that is written like a request')


def headers(server):
    link = server.connect()
    try:
        link.sendall(b'GET /health HTTP/1.1\r\n')
        for i in range(100000):
            link.sendall(b'X-%d: %s\r\n' % (i, b'y' * 100))
    except (BrokenPipeError, ConnectionResetError):
        pass
    status = read_answer(link)[0]
    check(status in (400, 0), 'headers of 10 MB: %d' % status)
    link = server.connect()
    link.sendall(b'\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03' + bytes(range(256)) + b'\r\n\r\n')
    status = read_answer(link)[0]
    check(status in (400, 0), 'no HTTP at all: %d' % status)


BODY = b'{"prompt":"x","max_tokens":1}'
POST = b'POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n'
INNER = b'GET /version HTTP/1.1\r\nHost: x\r\n\r\n'


def chunked(body):
    return b'%x\r\n' % len(body) + body + b'\r\n0\r\n\r\n'


def smuggled(server):
    """What a proxy in front may read otherwise (RFC 9112, 11.2): one answer, 400, and the connection ends."""
    n = len(BODY)
    unclear = {
        'a length and chunks': b'Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n' + chunked(BODY),
        'chunks and a length': b'Transfer-Encoding: chunked\r\nContent-Length: %d\r\n\r\n' % n + chunked(BODY),
        'two lengths': b'Content-Length: %d\r\nContent-Length: %d\r\n\r\n' % (n, n + len(INNER)) + BODY,
        'a list of lengths': b'Content-Length: %d, %d\r\n\r\n' % (n, n) + BODY,
        'a length with a sign': b'Content-Length: +%d\r\n\r\n' % n + BODY,
        'a length in base 16': b'Content-Length: 0x%x\r\n\r\n' % n + BODY,
        'a blank behind a name': b'Content-Length : %d\r\n\r\n' % n + BODY,
        'a blank in a name': b'X Y: 1\r\nContent-Length: %d\r\n\r\n' % n + BODY,
        'another coding': b'Transfer-Encoding: xchunked\r\nContent-Length: %d\r\n\r\n' % n + BODY,
        'two codings': b'Transfer-Encoding: gzip, chunked\r\n\r\n' + chunked(BODY),
        'a coding twice': b'Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n' + chunked(BODY),
        'two hosts': b'Host: y\r\nContent-Length: %d\r\n\r\n' % n + BODY}
    for what, rest in unclear.items():
        link = server.connect()
        link.sendall(POST + rest + INNER)
        got = read_all(link)
        check(got.startswith(b'HTTP/1.1 400 ') and got.count(b'HTTP/1.1') == 1, '%s: %r' % (what, got[:30]))


def wrong_chunks(server):
    """A size of a chunk that is no number is a bad request; one that is too large a body that is too long."""
    head = POST + b'Transfer-Encoding:  chunked \r\n\r\n'
    wrong = {b'zz\r\n' + BODY: 400, b'+%x\r\n' % len(BODY) + BODY: 400, b'0x1d\r\n' + BODY: 400, b'-5\r\n' + BODY: 400,
             b'%x;a=b\r\n' % len(BODY) + BODY: 400, b'%x\r\n' % (len(BODY) - 3) + BODY: 400,
             b'9\r\n' + BODY[:9] + b'\r\n%xh\r\n' % (len(BODY) - 9) + BODY[9:]: 400,
             b'9\r\n\r\nzz\r\n\r\nx\r\n14;\r\n' + BODY[9:]: 400, b'f' * 16 + b'\r\n' + BODY: 413,
             b'f' * 40 + b'\r\n' + BODY: 413, b'40001\r\n' + BODY: 413}
    for body, status in wrong.items():
        for before in (b'', INNER, POST + b'Content-Length: %d\r\n\r\n' % len(BODY) + BODY):
            for in_pieces in (False, True):
                link = server.connect(timeout=10)
                data = before + head + body + b'\r\n0\r\n\r\n' + INNER
                for at in range(0, len(data), 1 if in_pieces else len(data)):
                    try:
                        link.sendall(data[at:at + (1 if in_pieces else len(data))])
                    except (BrokenPipeError, ConnectionResetError):
                        break
                got = read_all(link)
                check(b'HTTP/1.1 %d ' % status in got and got.count(b'HTTP/1.1') == 1 + (before != b''),
                      'chunks %r behind %d bytes: %d %r' % (body[:12], len(before), status, got[-30:]))
                link.close()
    for body in (chunked(BODY), b'0000%x  \r\n' % len(BODY) + BODY + b'\r\n0\r\n\r\n',
                 b''.join(b'1\r\n%c\r\n' % byte for byte in BODY[:5]) + chunked(BODY[5:])):
        link = server.connect()
        link.sendall((head + body) * 2 + INNER[:-2] + b'Connection: close\r\n\r\n')
        got = read_all(link)
        check(got.count(b'HTTP/1.1 200 ') == 3 and b'"version"' in got, 'chunks as they should be: %r' % got[:20])


def heads(server):
    """HEAD has no body (RFC 9110, 9.3.2): what comes behind its answer is the next one. As in FastAPI, a route of GET refuses it."""
    for path, status, detail in ((b'/health', 405, b'Method Not Allowed'), (b'/v1/completions', 405, b'Method Not Allowed'),
                                 (b'/nothing', 404, b'Not Found')):
        link = server.connect()
        link.sendall(b'HEAD ' + path + b' HTTP/1.1\r\nHost: x\r\n\r\n' + INNER[:-2] + b'Connection: close\r\n\r\n')
        first, _, rest = read_all(link).partition(b'\r\n\r\n')
        lines = first.split(b'\r\n')
        check(lines[0].startswith(b'HTTP/1.1 %d ' % status) and b'Content-Length: %d' % len(b'{"detail":"%s"}' % detail) in lines
              and (status == 404 or any(line.lower().startswith(b'allow: ') for line in lines))
              and rest.startswith(b'HTTP/1.1 200 ') and b'"version"' in rest, 'HEAD %s: %d without a body' % (path.decode(), status))


def any_bytes(server):
    """Requests with wrong bytes in their lines: a status or nothing, within the connection's idle time."""
    rng = random.Random(7)
    whole = [POST + b'Content-Length: %d\r\nX-A: b\r\n\r\n' % len(BODY) + BODY, POST + b'Transfer-Encoding: chunked\r\n\r\n' +
             chunked(BODY), INNER]
    statuses = set()
    for i in range(400):
        data = bytearray(rng.choice(whole))
        for _ in range(rng.randrange(1, 5)):
            at = rng.randrange(len(data))
            data[at:at + rng.randrange(3)] = bytes(rng.choice(b'\r\n\0 :;,xF0-\t\x7f\xff') for _ in range(rng.randrange(3)))
        with server.connect() as link:
            link.sendall(data)
            link.shutdown(socket.SHUT_WR)
            statuses.add(read_all(link)[:12])
    check(all(status[:9] in (b'', b'HTTP/1.1 ', b'HTTP/1.0 ') for status in statuses), 'wrong bytes: %s' % sorted(statuses))


def malformed(server):
    rng = random.Random(1)
    bodies = [b'', b'{', b'[]', b'null', b'{"prompt":}', b'{"prompt":"\xff\xfe"}', b'{"prompt":"x","user":"a\\u0000b"}',
              b'[' * 100000, b'{"prompt":' + b'[' * 5000, b'{"prompt":"x","max_tokens":1e999}',
              b'{"prompt":"x","max_tokens":99999999999999999999}', b'{"prompt":[1,"a"]}', b'{"prompt":[[1],[]]}',
              b'{"prompt":{"a":1}}', b'{"prompt":"x","n":-1}', b'{"prompt":"x","stream":"yes"}',
              b'{"prompt":"x","user":"a\\nb"}', b'{"prompt":"x","user":7}', b'{"prompt":[-1]}', b'{"prompt":[1.5]}',
              b'{"prompt":"x","stream_options":5}', b'{"prompt":["a","\\u0\xd4\x9a9"]}',
              b'{"prompt":"x","max_tokens":"%s"}' % ('\u4e2d' * 100).encode(),
              b'{"prompt":"x","min_tokens":9,"max_tokens":2}', b'{"prompt":"x","priority":1e99}',
              b'{"prompt":"x","priority":-2147483649}', b'{"prompt":"x","prompt":"y"}']
    for body in bodies:
        answer = server.post('/v1/completions', body)
        check(answer[0] == 400, 'body %r: 400' % body[:40] if answer[0] == 400 else 'body %r: %r' % (body[:40], answer))
        error = json.loads(answer[2])['error']
        check(error['code'] == 400 and error['message'], 'it says why')
    whole = json.dumps({'prompt': 'hello', 'max_tokens': 2, 'stream_options': None}).encode()
    for _ in range(300):
        body = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            body[rng.randrange(len(body))] = rng.randrange(256)
        status = server.post('/v1/completions', bytes(body))[0]
        check(status in (200, 400, 404), 'a body with wrong bytes: %d' % status)


def slow_reader(server):
    """One that reads nothing is disconnected, once more than unsent_kib wait for it."""
    body = {'prompt': 'x', 'max_tokens': 1500, 'ignore_eos': True, 'stream': True, 'n': 16}
    link = server.send('POST', '/v1/completions', body)
    link.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    check(comes_to(server, lambda load: load > 1), 'the request of a client that does not read is taken')
    check(comes_to(server, lambda load: load <= 1), 'a client that does not read is let go')
    link.close()


def comes_to(server, holds):
    """Whether the load does so within two minutes; the request for it counts as one."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if holds(load_of(server)):
            return True
        time.sleep(0.01)
    return False


def load_of(server):
    return json.loads(server.ask('GET', '/load')[2])['server_load']


def many_connections(server):
    """Half-open ones and whole ones, beyond the limit: those in excess get 503, idle ones are closed."""
    links, in_excess = [], 0
    n = min(10000, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 200)
    for _ in range(n):
        link = server.connect()
        link.sendall(b'GET /health HT')
        links.append(link)
    waiting = set(links)
    until = time.monotonic() + 60
    while len(waiting) > 400 and time.monotonic() < until:
        for link in list(waiting):
            link.setblocking(False)
            try:
                in_excess += b' 503 ' in link.recv(1000)
            except BlockingIOError:
                continue
            except ConnectionResetError:
                pass
            waiting.discard(link)
        time.sleep(0.1)
    at_rest = len(waiting)
    check(in_excess > 0 and at_rest <= 400, '%d connections, %d stay, %d in excess get 503' % (n, at_rest, in_excess))
    while time.monotonic() < until and server.ask('GET', '/health')[0] != 200:
        time.sleep(0.5)
    check(server.ask('GET', '/health')[0] == 200, 'idle connections make room')
    for link in links:
        link.close()


def half_bodies(server):
    """Bodies that are begun and not ended take no more than bodies_mib together; nor do closed connections count."""
    for _ in range(3):
        links = []
        for _ in range(40):
            link = server.send('POST', '/v1/completions', b'x' * 200000, {'Content-Length': '250000'})
            links.append(link)
        refused_at, heard = 0, select.select(links, [], [], 60)[0]
        while heard:
            links_left = [link for link in links if link not in heard]
            for link in heard:
                try:
                    refused_at += b' 503 ' in link.recv(1000)
                except ConnectionResetError:
                    pass
                link.close()
            links = links_left
            heard = select.select(links, [], [], 0.5)[0]
        check(1 <= refused_at <= 25, 'half bodies of 8 MB where 4 MiB may be: %d get 503' % refused_at)
        for link in links:
            link.close()
        load_of(server)  # what was closed before is noticed before
        time.sleep(0.2)


def early_bytes(server):
    """A client that goes on sending while it is answered."""
    body = json.dumps({'prompt': 'x', 'max_tokens': 30, 'ignore_eos': True, 'stream': True}).encode()
    head = b'POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n' \
        % len(body)
    link = server.connect()
    link.sendall((head + body) * 3)
    got = b''
    while got.count(b'[DONE]') < 3:
        part = link.recv(1 << 16)
        check(part, 'an answer to each of three requests at once') if not part else None
        got += part
    check(got.count(b'[DONE]') == 3, 'three requests at once are answered one by one')
    link.sendall(b'z' * 100)
    link.close()
    for method in ('HEAD', 'PUT', 'OPTIONS', 'TRACE', 'BREW'):
        status = server.ask(method, '/v1/completions')[0]
        check(status in (405, 501, 400, 0), '%s: %d' % (method, status))


END = b'data: [DONE]\n\n\r\n0\r\n\r\n'


def long_body_behind(server):
    """A body that is too long behind a request that is being answered: the whole answer, then 413; none of it is awaited."""
    body = json.dumps({'prompt': 'x', 'max_tokens': 100, 'ignore_eos': True, 'stream': True}).encode()
    first = POST + b'Content-Length: %d\r\n\r\n' % len(body) + body
    length = b'Content-Length: %d' % GIB
    # What comes with the first request, within its answer, and behind it.
    cases = ((POST + length + b'\r\n\r\n', b'', b''), (b'', POST + length + b'\r\n\r\n', b''),
             (b'', POST + length + b'\r\n\r\n' + b'x' * (1 << 18), b''), (POST, length[:9], length[9:] + b'\r\n\r\n'),
             (b'', POST[:9], POST[9:] + length + b'\r\n\r\n'), (INNER + POST, length, b'\r\n'))
    for at_once, within, behind in cases:
        link = server.connect(timeout=3)
        link.sendall(first + at_once)
        got = b''
        while b'data: ' not in got:
            got += link.recv(1 << 16)
        link.sendall(within)
        while END not in got:
            got += link.recv(1 << 16)
        link.sendall(behind)
        got += read_all(link)
        answer, _, rest = got.partition(END)
        check(answer.count(b'data: ') == 100 and rest.count(b'HTTP/1.1 413 ') == 1
              and rest.count(b'HTTP/1.1') == 1 + (INNER in at_once), 'a body of 1 GiB behind a stream: 413')
    link = server.connect()
    inner = b'Content-Length: 999999999\r\n\r\n'
    link.sendall(first)
    link.recv(1)
    link.sendall(POST + b'Connection: close\r\nContent-Length: %d\r\n\r\n' % len(inner))
    got = b''
    while END not in got:
        got += link.recv(1 << 16)
    time.sleep(0.1)
    link.sendall(inner)
    refusal = read_all(link)
    check(refusal.startswith(b'HTTP/1.1 400 '), 'a body behind a stream that is written like a head: %r' % refusal[:40])


def gone(server):
    """Clients that go: before the answer, within it, and without a word."""
    for stream in (False, True):
        for _ in range(20):
            link = server.send('POST', '/v1/completions',
                               {'prompt': 'x', 'max_tokens': 1000, 'ignore_eos': True, 'stream': stream})
            time.sleep(0.005)
            if stream:
                link.recv(10)
            link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b'\1\0\0\0\0\0\0\0')
            link.close()
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and load_of(server) > 1:
        time.sleep(0.05)
    check(load_of(server) <= 1, 'requests of clients that have gone leave')


def beside(server, results):
    """A stream that goes on beside all of that."""
    while not results['stop']:
        got = server.stream({'prompt': 'x', 'max_tokens': 400, 'ignore_eos': True}, timeout=120)
        if len(got) != 401 or got[-1] != '[DONE]' or got[-2]['choices'][0]['finish_reason'] != 'length':
            results['bad'] = got[-3:]
        results['n'] += 1


def main():
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, 12000) if most > 0 else 12000, most))
    with Server(sys.argv[1], CONFIG, '-q') as server:
        server.stream({'prompt': 'x', 'max_tokens': 4})
        before = server.rss_kib()
        results = {'stop': False, 'n': 0, 'bad': None}
        thread = threading.Thread(target=beside, args=(server, results))
        thread.start()
        try:
            for attack in (malformed, smuggled, wrong_chunks, heads, any_bytes, headers, huge_body, half_bodies, early_bytes,
                           long_body_behind, gone, slow_reader):
                attack(server)
        finally:
            results['stop'] = True
            thread.join()
        check(results['n'] > 0 and results['bad'] is None, '%d streams beside: %r' % (results['n'], results['bad']))
        many_connections(server)
        # A sanitizer keeps what is freed.
        most = (2 << 20) if b"__asan_init" in open(sys.argv[1], "rb").read() else 100 << 10
        check(server.rss_kib() - before < most, 'memory grew by %d KiB' % (server.rss_kib() - before))
        check(server.process.poll() is None, 'the server is there')
        check(server.stop() == 0, 'and ends well')


if __name__ == '__main__':
    main()
