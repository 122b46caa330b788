"""Flies requests in DistServe's simulator (simdistserve, LLMServe/DistServe at 82831f1).

    python simdistserve.py CHECKOUT BACKEND TP_PREFILL TP_DECODE REQUESTS.csv OUT.csv

REQUESTS.csv has arrival_s, prompt_tokens and output_tokens; the first request arrives at 0. OUT.csv has
first_token_latency and tpot of each request in milliseconds. Needs simpy, numpy and pandas.
"""

import csv
import json
import sys
import tempfile


def main(checkout, backend, tp_prefill, tp_decode, requests, out):
    sys.path.insert(0, checkout)
    from simdistserve.benchmarks.simulate_dist import main as simulate, parse_args

    with open(requests, newline="") as file:
        rows = list(csv.DictReader(file))
    workload = [
        {
            "start_time": float(row["arrival_s"]),
            "prompt_len": int(row["prompt_tokens"]),
            "output_len": int(row["output_tokens"]),
        }
        for row in rows
    ]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(workload, file)
        file.flush()
        arguments = [
            "--backend", backend, "--model", "facebook/opt-13b", "--N", str(len(rows)), "--rate", "1",
            "--arrival", "custom", "--workload", file.name, "--tp-prefill", tp_prefill, "--pp-prefill", "1",
            "--tp-decode", tp_decode, "--pp-decode", "1", "--output-request-latency", out,
        ]  # fmt: skip
        simulate(parse_args(arguments))


if __name__ == "__main__":
    main(*sys.argv[1:])
