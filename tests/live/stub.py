#!/usr/bin/env python3
"""A server that speaks OpenAI's API as far as a load client needs it, and misbehaves where it is asked to.

What it does goes by the model that a request names: "m" answers as vLLM does, with the timing of the options; the
names in HOSTILE do what they say; "wire:FILE" sends the bytes of the file. Requests are written to a file as JSON, a
line each, with the time at which they came and, behind their end, whether the client stayed.

usage: stub.py PORT_FILE [--ttft S] [--itl S] [--log FILE] [--style vllm|plain] [--wire DIR] [--shed N] [--bos N]
       [--tls FILE]
"""

import argparse
import asyncio
import json
import os
import ssl
import struct
import sys
import time

HEAD = ('HTTP/1.1 200 OK\r\nserver: uvicorn\r\ncontent-type: text/event-stream; charset=utf-8\r\n'
        'transfer-encoding: chunked\r\n\r\n').encode()


def chunk(data):
    return b'%x\r\n%s\r\n' % (len(data), data)


def event(fields):
    return chunk(b'data: ' + json.dumps(fields, separators=(',', ':')).encode() + b'\n\n')


def answer(status, text, kind='application/json', more=''):
    return (f'HTTP/1.1 {status}\r\ncontent-type: {kind}\r\n{more}content-length: {len(text.encode())}\r\n\r\n'
            + text).encode()


class Stub:
    def __init__(self, options):
        self.options = options
        self.log = open(options.log, 'w') if options.log else None
        self.n_running = self.n_requests = self.n_shed = 0
        self.metrics = open(os.path.join(options.wire, 'vllm-0.32-metrics.txt')).read() if options.wire else ''

    def note(self, **fields):
        if self.log:
            self.log.write(json.dumps(fields) + '\n')
            self.log.flush()

    # ---- answers ----

    def piece(self, body, chat, text, n, finish, first=False):
        """A chunk with a token, the n-th."""
        choice = {'index': 0, 'logprobs': None, 'finish_reason': finish}
        if chat:
            choice['delta'] = {'role': 'assistant', 'content': ''} if first else {'content': text}
        else:
            choice['text'] = text
        fields = {'id': 'cmpl-1', 'object': 'text_completion', 'created': 1, 'model': 'm', 'choices': [choice]}
        if self.options.style == 'vllm':
            if body.get('return_token_ids'):
                choice['token_ids'] = [900 + n]
            if body.get('stream_options', {}).get('continuous_usage_stats'):
                p = self.prompt_tokens(body)
                fields['usage'] = {'prompt_tokens': p, 'total_tokens': p + n, 'completion_tokens': n}
        return event(fields)

    def prompt_tokens(self, body):
        prompt = body.get('prompt')
        if isinstance(prompt, list):
            return len(prompt)
        return len((prompt or body['messages'][0]['content']).split()) + self.options.bos

    async def stream(self, body, chat, writer):
        options = self.options
        n, wanted = 0, body.get('max_tokens', 16)
        start = asyncio.get_running_loop().time()
        await asyncio.sleep(options.ttft)
        writer.write(HEAD)
        if chat:
            writer.write(self.piece(body, chat, '', 0, None, True))
        while n < wanted:
            n += 1
            writer.write(self.piece(body, chat, ' the', n, 'length' if n == wanted else None))
            if n < wanted:
                late = start + options.ttft + n * options.itl - asyncio.get_running_loop().time()
                if late > 0:
                    await asyncio.sleep(late)
            if writer.is_closing():
                raise ConnectionResetError
        p = self.prompt_tokens(body)
        if body.get('stream_options', {}).get('include_usage'):
            writer.write(event({'id': 'cmpl-1', 'object': 'text_completion', 'created': 1, 'model': 'm', 'choices': [],
                                'usage': {'prompt_tokens': p, 'total_tokens': p + n, 'completion_tokens': n,
                                          'prompt_tokens_details': {'cached_tokens': 1}}}))
        writer.write(chunk(b'data: [DONE]\n\n') + b'0\r\n\r\n')

    async def wire(self, name, writer):
        """A recorded answer, in pieces of 7 bytes: events and lines are torn everywhere."""
        data = open(os.path.join(self.options.wire, name), 'rb').read()
        writer.write(HEAD)
        for i in range(0, len(data), 7):
            writer.write(chunk(data[i:i + 7]))
            await writer.drain()
        writer.write(b'0\r\n\r\n')

    # ---- what no client should fall for ----

    async def redirect(self, body, writer):
        writer.write(answer('307 Temporary Redirect', '{}', more='location: http://127.0.0.1:9/v1/completions\r\n'))

    async def endless_headers(self, body, writer):
        writer.write(b'HTTP/1.1 200 OK\r\n')
        for i in range(10000000):
            writer.write(b'x-%d: %s\r\n' % (i, b'y' * 1000))
            await writer.drain()

    async def endless_line(self, body, writer):
        writer.write(HEAD + chunk(b'data: '))
        for _ in range(10000000):
            writer.write(chunk(b'x' * 65536))
            await writer.drain()

    async def endless_event(self, body, writer):
        writer.write(HEAD)
        for _ in range(10000000):
            writer.write(chunk(b'data: ' + b'x' * 1000 + b'\n'))
            await writer.drain()

    async def endless_comments(self, body, writer):
        writer.write(HEAD)
        for _ in range(10000000):
            writer.write(chunk(b': ping' + b'x' * 1000 + b'\n\n'))
            await writer.drain()

    async def endless_tokens(self, body, writer):
        writer.write(HEAD)
        for i in range(10000000):
            writer.write(self.piece({}, False, ' the', i, None))
            await writer.drain()

    async def empty_chunks(self, body, writer):
        writer.write(HEAD)
        for i in range(10000000):
            writer.write(self.piece({}, False, '', i, None))
            await writer.drain()

    async def broken_json(self, body, writer):
        writer.write(HEAD + chunk(b'data: {"choices": [\n\n') + b'0\r\n\r\n')

    async def deep_json(self, body, writer):
        writer.write(HEAD + chunk(b'data: ' + b'[' * 100000 + b'\n\n') + b'0\r\n\r\n')

    async def no_choices(self, body, writer):
        writer.write(HEAD + chunk(b'data: {"model": "m"}\n\n') + b'0\r\n\r\n')

    async def error_inside(self, body, writer):
        writer.write(HEAD + self.piece(body, False, ' the', 1, None)
                     + event({'error': {'message': 'the engine\ndied', 'type': 'InternalServerError', 'code': 500}})
                     + chunk(b'data: [DONE]\n\n') + b'0\r\n\r\n')

    async def cut(self, body, writer):
        writer.write(HEAD + self.piece(body, False, ' the', 1, None) + b'5\r\nda')
        await writer.drain()
        writer.close()

    async def unfinished(self, body, writer):
        writer.write(HEAD + self.piece(body, False, ' the', 1, None) + b'0\r\n\r\n')

    async def reset(self, body, writer):
        sock = writer.get_extra_info('socket')
        sock.setsockopt(1, 13, struct.pack('ii', 1, 0))  # SO_LINGER: a reset in place of an end
        writer.transport.abort()

    async def no_http(self, body, writer):
        writer.write(b'SSH-2.0-OpenSSH_9.2\r\n' * 3)
        await writer.drain()
        writer.close()

    async def whole_json(self, body, writer):
        writer.write(answer('200 OK', '{"choices": []}'))

    async def silent(self, body, writer):
        await asyncio.sleep(600)

    async def drip(self, body, writer):
        writer.write(HEAD)
        while True:
            writer.write(chunk(b':\n'))
            await writer.drain()
            await asyncio.sleep(0.05)

    async def wrong(self, body, writer):
        text = '{"error":{"message":"max_tokens=5000 cannot be greater, \\"really\\"","type":"BadRequestError","code":400}}'
        writer.write(answer('400 Bad Request', text))

    async def engine_dead(self, body, writer):
        writer.write(answer('500 Internal Server Error', 'Internal Server Error', 'text/plain'))

    async def overloaded(self, body, writer):
        writer.write(answer('503 Service Unavailable', '{"error":{"message":"too many queued requests"}}'))

    HOSTILE = ('redirect endless_headers endless_line endless_event endless_comments endless_tokens empty_chunks '
               'broken_json deep_json no_choices error_inside cut unfinished reset no_http whole_json silent drip wrong '
               'engine_dead overloaded').split()

    # ---- requests ----

    async def complete(self, body, chat, writer):
        model = body['model']
        self.n_requests += 1
        number = self.n_requests
        self.note(number=number, time=time.monotonic(), chat=chat, body=body)
        if self.n_shed < self.options.shed:
            self.n_shed += 1
            await self.overloaded(body, writer)
        elif model in self.HOSTILE:
            await getattr(self, model)(body, writer)
        elif model.startswith('wire:'):
            await self.wire(model[5:], writer)
        else:
            self.n_running += 1
            try:
                await self.stream(body, chat, writer)
                await writer.drain()
                self.note(number=number, ended=time.monotonic())
            except (ConnectionError, asyncio.CancelledError):
                self.note(number=number, gone=time.monotonic())
                raise
            finally:
                self.n_running -= 1

    async def route(self, method, path, body, writer):
        if path in ('/v1/completions', '/v1/chat/completions') and method == 'POST':
            await self.complete(json.loads(body), 'chat' in path, writer)
        elif path == '/v1/models':
            writer.write(answer('200 OK', '{"object":"list","data":[{"id":"m","object":"model"}]}'))
        elif path == '/version':
            writer.write(answer('200 OK', '{"version":"0.32.0"}'))
        elif path == '/metrics':
            running = f'vllm:num_requests_running{{engine="0",model_name="m"}} {self.n_running}.0\n'
            writer.write(answer('200 OK', running + self.metrics, 'text/plain; version=1.0.0'))
        else:
            writer.write(answer('404 Not Found', '{"detail":"Not Found"}'))

    async def connection(self, reader, writer):
        try:
            while True:
                head = await reader.readuntil(b'\r\n\r\n')
                lines = head.decode('latin-1').split('\r\n')
                method, path, _ = lines[0].split(' ', 2)
                fields = dict(line.split(': ', 1) for line in lines[1:] if ': ' in line)
                fields = {name.lower(): value for name, value in fields.items()}
                if self.log and path.startswith('/v1/c'):
                    self.note(headers=fields)
                body = await reader.readexactly(int(fields.get('content-length', 0)))
                await self.watched(reader, self.route(method, path, body, writer))
                await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def watched(self, reader, work):
        """Ends the work as soon as the client is gone."""
        task = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(self.end_of(reader))
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        gone.cancel()
        if not task.done():
            task.cancel()
        await task

    @staticmethod
    async def end_of(reader):
        while not reader.at_eof():
            await asyncio.sleep(0.02)


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('port_file')
    parser.add_argument('--ttft', type=float, default=0.01)
    parser.add_argument('--itl', type=float, default=0.002)
    parser.add_argument('--log')
    parser.add_argument('--style', default='vllm')
    parser.add_argument('--wire', default=os.path.join(os.path.dirname(os.path.abspath(__file__)), 'wire'))
    parser.add_argument('--shed', type=int, default=0)
    parser.add_argument('--bos', type=int, default=0)
    parser.add_argument('--tls', help='a file with certificate and key')
    options = parser.parse_args()
    stub = Stub(options)
    tls = None
    if options.tls:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(options.tls)
    server = await asyncio.start_server(stub.connection, '127.0.0.1', 0, limit=1 << 24, backlog=4096, ssl=tls)
    with open(options.port_file + '.tmp', 'w') as file:
        file.write(str(server.sockets[0].getsockname()[1]))
    os.rename(options.port_file + '.tmp', options.port_file)
    async with server:
        await server.serve_forever()


if __name__ == '__main__':
    sys.exit(asyncio.run(main()))
