"""Sends the requests of a trace to an OpenAI-compatible server when they arrive, and waits for the answers.

    python3 drive.py http://127.0.0.1:18300 MODEL TRACE.csv

A prompt is sent as token ids: the trace's token_ids, or numbers drawn by the row's number, behind the first
prefix_tokens of its prefix_group. The answer has exactly output_tokens (ignore_eos)."""

import csv
import json
import random
import sys
import threading
import time
import urllib.request

VOCABULARY = range(3, 8000)


def prompt_of(number, row):
    if row.get("token_ids"):
        return list(map(int, row["token_ids"].split()))
    n_shared = int(row.get("prefix_tokens") or 0)
    shared = random.Random(f"group {row.get('prefix_group')}").choices(VOCABULARY, k=n_shared)
    return shared + random.Random(number).choices(VOCABULARY, k=int(row["prompt_tokens"]) - n_shared)


def body(model, number, row):
    prompt = prompt_of(number, row)
    return {"model": model, "prompt": prompt, "max_tokens": int(row["output_tokens"]), "ignore_eos": True,
            "temperature": 0, "detokenize": False}


def ask(server, asked, at, failed):
    time.sleep(max(0.0, at - time.monotonic()))
    request = urllib.request.Request(server + "/v1/completions", json.dumps(asked).encode(),
                                     {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=600) as answer:
            json.load(answer)
    except OSError as error:
        failed.append(f"{error}")


def main(server, model, path):
    with open(path, encoding="ascii") as file:
        rows = list(csv.DictReader(file))
    failed, begun = [], time.monotonic() + 1.0
    threads = [threading.Thread(target=ask, args=(server, body(model, n, row), begun + float(row["arrival_s"]), failed))
               for n, row in enumerate(rows)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{len(rows)} requests, {len(failed)} failed", *failed[:3], sep="\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
