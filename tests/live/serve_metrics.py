#!/usr/bin/env python3
"""/metrics has vLLM's names, types, labels and bounds (a capture of 0.32.0), and its numbers are those that
requests.csv and steps.csv have: each histogram is counted here again.

usage: serve_metrics.py INFLIGHT CAPTURE
"""

import csv
import json
import re
import sys

from serving import Server

CONFIG = """
serving: {preset: vllm-v1-sync, max_model_len: 2048, kv: {num_blocks: 4000}}
cost: {model: linear, step_s: 0.003, prefill_token_s: 2.0e-5}
live: {model_name: m, metrics: both}
"""


def parse(text):
    types, values = {}, {}
    for line in text.decode().splitlines():
        if line.startswith('# TYPE'):
            types[line.split()[2]] = line.split()[3]
        elif not line.startswith('#'):
            name, value = line.rsplit(' ', 1)
            values[name] = float(value)
    return types, values


def captured(path):
    types, names = {}, []
    with open(path) as file:
        for line in file.read().splitlines()[1:]:
            if line.startswith('# TYPE'):
                types[line.split()[2]] = line.split()[3]
            else:
                names.append(line)
    return types, names


def histogram(values, name, samples, model='m'):
    """The counts up to each bound, and the sum, are those of the samples."""
    n = 0
    for key, count in values.items():
        found = re.match(re.escape(name) + r'_bucket\{engine="0",le="([^"]+)"', key)
        if found:
            bound = float(found.group(1))
            want = sum(sample <= bound + 1e-12 for sample in samples)
            assert count == want, (key, count, want)
            n += 1
    tail = '{engine="0",model_name="%s"}' % model
    assert n > 5, (name, n)
    assert values[name + '_count' + tail] == len(samples), name
    assert abs(values[name + '_sum' + tail] - sum(samples)) < 1e-6 * max(1, sum(samples)), name


def main():
    with Server(sys.argv[1], CONFIG, '-q') as server:
        for i in range(12):
            server.stream({'prompt': list(range(3 + 40 * i)), 'max_tokens': 1 + i, 'ignore_eos': True,
                           'n': 1 + i % 2})
        status, headers, text = server.ask('GET', '/metrics')
        assert status == 200 and headers['content-type'] == 'text/plain; version=1.0.0; charset=utf-8', headers
        types, values = parse(text)
        want_types, want_names = captured(sys.argv[2])
        for name, kind in want_types.items():
            assert types.get(name) == kind, (name, types.get(name), kind)
        ours = set(values)
        missing = [name for name in want_names if name not in ours and 'repetition' not in name and
                   'max_num_queued_tokens' not in name]
        assert not missing, missing
        bounds = {name for name in ours if '_bucket' in name and name.split('_bucket')[0] in want_types}
        assert bounds == {name for name in want_names if '_bucket' in name}, bounds ^ {
            name for name in want_names if '_bucket' in name}
        print('ok', len(want_types), 'families')
        page = server.ask('GET', '/')
        stats = json.loads(server.ask('GET', '/stats')[2])
        assert page[0] == 200 and b'/stats' in page[2] and len(stats['replicas']) == 1, stats
        assert server.stop() == 0
        rows = list(csv.DictReader(server.file('requests.csv').decode().splitlines()))
        steps = list(csv.DictReader(server.file('steps.csv').decode().splitlines()))
    number = {key: [float(row[key]) for row in rows if row[key]] for key in rows[0] if key != 'status'}
    per_n = [1 + i % 2 for i in range(12)]
    histogram(values, 'vllm:time_to_first_token_seconds', number['ttft_s'])
    histogram(values, 'sglang:time_to_first_token_seconds', number['ttft_s'])
    histogram(values, 'vllm:e2e_request_latency_seconds', number['e2e_s'])
    histogram(values, 'vllm:request_time_per_output_token_seconds', number['tpot_s'])
    histogram(values, 'vllm:request_prompt_tokens', number['prompt_tokens'])
    histogram(values, 'vllm:request_params_n', per_n)
    histogram(values, 'vllm:request_generation_tokens',
              [out for out, n in zip(number['output_tokens'], per_n) for _ in range(n)])
    histogram(values, 'vllm:iteration_tokens_total',
              [float(step['prefill_tokens']) + float(step['decode_tokens']) for step in steps])
    gaps = sum(out - 1 for out in number['output_tokens'])
    tail = '{engine="0",model_name="m"}'
    assert values['vllm:inter_token_latency_seconds_count' + tail] == gaps, gaps
    assert values['vllm:generation_tokens_total' + tail] == sum(
        out * n for out, n in zip(number['output_tokens'], per_n))
    assert values['vllm:request_success_total{engine="0",finished_reason="length",model_name="m"}'] == 12
    assert values['vllm:num_requests_running' + tail] == 0 == values['vllm:kv_cache_usage_perc' + tail]
    print('ok histograms')


if __name__ == '__main__':
    main()
