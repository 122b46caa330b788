#!/usr/bin/env python3
"""`inflight replay` against servers that others wrote, with random weights, on a CPU: every request finishes, with the
tokens that were asked for, and what the server counts is what was sent.

usage: servers.py INFLIGHT ROOT [llama.cpp | vllm]...

Without names all that are installed; a name that is not installed: exit 77. llama.cpp's server is that of the Python package
xllamacpp, with gguf to write a model; `vllm` is looked for in PATH (vLLM's build for CPUs). The vocabulary is the small GPT-2 of
tests/tokenizers/fixtures. By hand, before a release.
"""

import csv
import gzip
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

from others import each, has_module

LLAMACPP = """
import sys, time, xllamacpp
p = xllamacpp.CommonParams()
p.model.path, p.port = sys.argv[1], int(sys.argv[2])
p.n_parallel, p.n_ctx, p.endpoint_metrics, p.warmup, p.cpuparams.n_threads = 8, 16384, True, False, 1
server = xllamacpp.Server(p)
while True:
    time.sleep(60)
"""


def vocabulary(root):
    with gzip.open(os.path.join(root, 'tests/tokenizers/fixtures/gpt2.json.gz'), 'rt') as file:
        text = file.read()
    made = json.loads(text)
    words = {**made['model']['vocab'], **{token['content']: token['id'] for token in made['added_tokens']}}
    return text, [word for word, _ in sorted(words.items(), key=lambda item: item[1])], made['model']['merges']


def write_gguf(root, path):
    import gguf
    import numpy
    width, hidden, layers = 64, 128, 2
    _, words, merges = vocabulary(root)
    rng = numpy.random.default_rng(1)
    to = gguf.GGUFWriter(path, 'llama')
    to.add_context_length(4096)
    to.add_embedding_length(width)
    to.add_block_count(layers)
    to.add_feed_forward_length(hidden)
    to.add_head_count(4)
    to.add_head_count_kv(4)
    to.add_layer_norm_rms_eps(1e-5)
    to.add_rope_dimension_count(width // 4)
    to.add_vocab_size(len(words))
    to.add_tokenizer_model('gpt2')
    to.add_tokenizer_pre('gpt-2')
    to.add_token_list(words)
    to.add_token_types([1] * (len(words) - 1) + [3])
    to.add_token_merges([merge if isinstance(merge, str) else ' '.join(merge) for merge in merges])
    to.add_bos_token_id(len(words) - 1)
    to.add_eos_token_id(len(words) - 1)

    def matrix(name, *shape):
        to.add_tensor(name, (rng.standard_normal(shape) * .05).astype(numpy.float32))

    matrix('token_embd.weight', len(words), width)
    matrix('output.weight', len(words), width)
    to.add_tensor('output_norm.weight', numpy.ones(width, numpy.float32))
    for i in range(layers):
        for name in ('attn_q', 'attn_k', 'attn_v', 'attn_output'):
            matrix('blk.%d.%s.weight' % (i, name), width, width)
        matrix('blk.%d.ffn_gate.weight' % i, hidden, width)
        matrix('blk.%d.ffn_up.weight' % i, hidden, width)
        matrix('blk.%d.ffn_down.weight' % i, width, hidden)
        for name in ('attn_norm', 'ffn_norm'):
            to.add_tensor('blk.%d.%s.weight' % (i, name), numpy.ones(width, numpy.float32))
    to.write_header_to_file()
    to.write_kv_data_to_file()
    to.write_tensors_to_file()
    to.close()


def free_port():
    with socket.socket() as link:
        link.bind(('127.0.0.1', 0))
        return link.getsockname()[1]


def start_llamacpp(root, folder, port):
    model = os.path.join(folder, 'tiny.gguf')
    write_gguf(root, model)
    return [sys.executable, '-c', LLAMACPP, model, str(port)], os.environ


def start_vllm(root, folder, port):
    """head_dim 16 and blocks of 16 tokens fail on CPUs: 64 and 32."""
    text, words, _ = vocabulary(root)
    shape = {'model_type': 'llama', 'architectures': ['LlamaForCausalLM'], 'hidden_size': 256, 'num_attention_heads': 4,
             'num_key_value_heads': 4, 'head_dim': 64, 'intermediate_size': 256, 'num_hidden_layers': 2,
             'vocab_size': len(words), 'max_position_embeddings': 4096}
    for name, value in (('config.json', json.dumps(shape)), ('tokenizer.json', text), ('tokenizer_config.json', json.dumps(
            {'tokenizer_class': 'PreTrainedTokenizerFast', 'eos_token': '<|endoftext|>'}))):
        with open(os.path.join(folder, name), 'w') as file:
            file.write(value)
    command = ['vllm', 'serve', folder, '--served-model-name', 'm', '--load-format', 'dummy', '--host', '127.0.0.1', '--port',
               str(port), '--max-model-len', '2048', '--enforce-eager', '--dtype', 'float32', '--max-num-seqs', '32',
               '--block-size', '32', '--enable-prompt-tokens-details', '--enable-per-request-metrics']
    return command, {**os.environ, 'VLLM_TARGET_DEVICE': 'cpu', 'VLLM_CPU_KVCACHE_SPACE': '1', 'OMP_NUM_THREADS': '1',
                     'VLLM_CPU_OMP_THREADS_BIND': 'nobind', 'HF_HUB_OFFLINE': '1', 'VLLM_NO_USAGE_STATS': '1'}


def wait_for(url, server, log):
    until = time.monotonic() + 600
    while time.monotonic() < until and server.poll() is None:
        try:
            with urllib.request.urlopen(url + '/health', timeout=5) as answer:
                if answer.status == 200:
                    return
        except OSError:
            pass
        time.sleep(.5)
    raise AssertionError(open(log).read()[-3000:])


def check(program, folder, url):
    rng = random.Random(1)
    trace, out = os.path.join(folder, 'trace.csv'), os.path.join(folder, 'out')
    asked = [(rng.randrange(5, 300), rng.randrange(1, 40)) for _ in range(100)]
    with open(trace, 'w') as file:
        file.write('arrival_s,prompt_tokens,output_tokens\n')
        file.writelines('%.2f,%d,%d\n' % (i * .1, *lengths) for i, lengths in enumerate(asked))
    run = subprocess.run([program, 'replay', trace, '-s', url, '-o', out, '--vocab', '1000', '--first-id', '100',
                          '--warmup', '4', '--wait', '60'], capture_output=True, text=True, timeout=1200)
    assert run.returncode == 0, run.stderr[-2000:]
    with open(os.path.join(out, 'requests.csv')) as file:
        rows = list(csv.DictReader(file))
    assert {row['status'] for row in rows} == {'finished'}, [row['error'] for row in rows if row['error']][:3]
    assert [(int(row['prompt_tokens_server']), int(row['output_tokens'])) for row in rows] == asked, rows
    read = subprocess.run([program, 'validate', out, os.path.join(out, 'bench.json'), '--no-plots', '-o', folder + '/both'],
                          capture_output=True, text=True, timeout=300)
    assert read.returncode == 0, read.stderr
    late = sorted(float(row['late_s']) for row in rows)
    print('   100 requests; sent late p50 %.2f ms, p99 %.2f ms' % (late[50] * 1e3, late[98] * 1e3))


SERVERS = {'llama.cpp': (start_llamacpp, lambda: has_module('xllamacpp') and has_module('gguf')),
           'vllm': (start_vllm, lambda: shutil.which('vllm'))}


def fly(program, root, start):
    with tempfile.TemporaryDirectory(prefix='servers-') as folder:
        port, log = free_port(), os.path.join(folder, 'log')
        command, env = start(root, folder, port)
        with open(log, 'w') as file:
            server = subprocess.Popen(command, stdout=file, stderr=file, env=env)
        try:
            wait_for('http://127.0.0.1:%d' % port, server, log)
            check(program, folder, 'http://127.0.0.1:%d' % port)
        finally:
            server.terminate()
            server.wait(timeout=120)


if __name__ == '__main__':
    sys.exit(each(SERVERS, fly))
