"""A scheduler for vLLM that plans as vLLM's own does and logs each step, in the format of
docs/formats.md. vLLM V1, 0.10 and later, with synchronous scheduling:

    STEP_LOG=DIR PYTHONPATH=tests/vllm vllm serve MODEL --no-async-scheduling --scheduler-cls step_log.Logged

DIR gets step_log.csv, a row for each request of each step, and requests.csv, a trace with a row for
each request that has finished, in order of arrival. STEP_LOG_TOKENS=1 adds the ids
of the prompt's tokens, from which prefixes are found: the text itself, where the tokenizer is there.

The number of a request counts calls of add_request, from 0. It arrives with the first plan that may
schedule it: vLLM takes requests from its queue between two steps. A step lasts until the next plan
begins, or until its tokens are known if no request is left: the host's time between two plans is
part of a step, time without requests is not."""

import os
import time

from vllm.v1.core.sched.scheduler import Scheduler

STEPS = "step,start_s,duration_s,request_id,scheduled_tokens,computed_tokens\n"
REQUESTS = "request_id,arrival_s,prompt_tokens,output_tokens"


class Logged(Scheduler):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if getattr(self.vllm_config.scheduler_config, "async_scheduling", False):
            raise ValueError("step_log logs synchronous scheduling: give --no-async-scheduling")
        folder = os.environ["STEP_LOG"]
        os.makedirs(folder, exist_ok=True)
        self.with_tokens = os.environ.get("STEP_LOG_TOKENS") == "1"
        self.steps = open(os.path.join(folder, "step_log.csv"), "w", encoding="ascii")
        self.rows = open(os.path.join(folder, "requests.csv"), "w", encoding="ascii")
        self.steps.write(STEPS)
        self.rows.write(REQUESTS + (",token_ids\n" if self.with_tokens else "\n"))
        self.begun = time.monotonic()
        self.numbers, self.arrivals, self.new, self.live = {}, {}, [], []
        self.n_requests = self.n_steps = self.n_written = 0
        self.finished = {}  # rows behind a request that has not finished
        self.open_step = None  # (start, end, parts)

    def now(self):
        return time.monotonic() - self.begun

    def add_request(self, request):
        super().add_request(request)
        self.numbers[request.request_id] = self.n_requests
        self.n_requests += 1
        self.new.append(request)

    def close_step(self, next_start):
        start, end, left, parts = self.open_step
        lasted = (next_start if left else end) - start
        for number, scheduled, computed in parts:
            self.steps.write(f"{self.n_steps},{start:.9f},{lasted:.9f},{number},{scheduled},{computed}\n")
        self.steps.flush()
        self.n_steps += 1
        self.open_step = None

    def schedule(self, *args, **kwargs):
        start = self.now()
        if self.open_step:
            self.close_step(start)
        for request in self.new:
            self.arrivals[request.request_id] = start
            self.live.append(request)
        self.new.clear()
        output = super().schedule(*args, **kwargs)
        computed = {new.req_id: new.num_computed_tokens for new in output.scheduled_new_reqs}
        cached = output.scheduled_cached_reqs
        computed.update(zip(cached.req_ids, cached.num_computed_tokens))
        if output.num_scheduled_tokens:
            parts = [(self.numbers[i], n, computed[i]) for i, n in output.num_scheduled_tokens.items()]
            self.open_step = [start, start, False, parts]
        return output

    def update_from_output(self, *args, **kwargs):
        outputs = super().update_from_output(*args, **kwargs)
        if self.open_step:
            self.open_step[1] = self.now()
            self.open_step[2] = self.has_unfinished_requests()
            if not self.open_step[2]:
                self.close_step(self.open_step[1])
        for request in [r for r in self.live if r.is_finished()]:
            self.live.remove(request)
            self.finish(request)
        while self.n_written in self.finished:
            self.rows.write(self.finished.pop(self.n_written))
            self.n_written += 1
        self.rows.flush()
        return outputs

    def finish(self, request):
        row = [self.numbers.pop(request.request_id), f"{self.arrivals.pop(request.request_id):.9f}",
               request.num_prompt_tokens, len(request.output_token_ids)]
        if self.with_tokens:
            row.append(" ".join(map(str, request.prompt_token_ids)))
        self.finished[row[0]] = ",".join(map(str, row)) + "\n"
