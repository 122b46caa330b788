#!/usr/bin/env python3
"""Estimates deployment.front_end from a recording. Only requests that met no other say it: others wait for steps, too.

    front_end.py spans RECORDED.csv.gz [FROM [TO]]

of vLLM's own spans (columns start, p, ttft, e2e, queue, prefill): what ttft is longer than queue + prefill, which the
engine accounts for. vLLM stamps a request behind HTTP and its tokenizer, which are therefore not in it.

    front_end.py residuals validation_requests.csv [FROM [TO]]

of any recording that a run without a front end was compared with: measured minus simulated TTFT. Errors of the costs of
prompts are in it.

Prints a line: how many requests, request_s and prompt_token_s by Theil and Sen (the median of all slopes, then the
median of what is left), and the median in all. FROM and TO count requests by arrival.
"""
import csv
import gzip
import statistics
import sys


def rows(path):
    with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
        return list(csv.DictReader(file))


def number(row, *names):
    return [float(row[name]) for name in names]


def spans(path):
    """(prompt tokens, seconds, True if no other was there) of each request."""
    last_end_s, found = float("-inf"), []
    for row in rows(path):
        start, prompt, ttft, e2e, queue, prefill = number(row, "start", "p", "ttft", "e2e", "queue", "prefill")
        found.append((prompt, ttft - queue - prefill, start > last_end_s))
        last_end_s = max(last_end_s, start + e2e)
    return found


def residuals(path):
    found = []
    for row in rows(path):
        prompt, measured, simulated = number(row, "prompt_tokens", "measured_ttft_s", "simulated_ttft_s")
        found.append((prompt, measured - simulated, row["in_flight"] == "0"))
    return found


def theil_sen(points):
    slopes = [(y - v) / (x - u) for i, (x, y) in enumerate(points) for u, v in points[:i] if x != u]
    slope = statistics.median(slopes) if slopes else 0.0
    return slope, statistics.median(y - slope * x for x, y in points)


def main():
    if len(sys.argv) < 3 or sys.argv[1] not in ("spans", "residuals"):
        sys.exit(__doc__)
    found = {"spans": spans, "residuals": residuals}[sys.argv[1]](sys.argv[2])
    first, last = (int(sys.argv[i]) if len(sys.argv) > i else default for i, default in ((3, 0), (4, len(found))))
    alone = [(prompt, seconds) for prompt, seconds, is_alone in found[first:last] if is_alone]
    if len(alone) < 3:
        sys.exit(f"{len(alone)} requests of {last - first} met no other, expected at least 3")
    slope, rest = theil_sen(alone)
    median = statistics.median(seconds for _, seconds in alone)
    print(f"{len(alone)} requests: request_s {rest:.3g}, prompt_token_s {slope:.3g}, median {median:.3g} s")


if __name__ == "__main__":
    main()
