"""A slow engine that is easy to read: requests, blocks and time, and a scheduler that plans each step.

Lists are Python lists, blocks are counts, time is whole milliseconds. A scheduler is a class; its `plan` follows
the published pseudo-code line by line.
"""

MOST_STEPS = 100000     # a few dozen requests with more steps make no progress


class EngineFails(Exception):
    """The engine itself would stop here, so there is nothing to compare with."""


class Request:
    def __init__(self, number, arrival_ms, prompt, output, priority=0, client=0, max_tokens=None,
                 prefix_group=0, prefix_tokens=0, ttft_slo_s=None, tpot_slo_s=None, samples=1,
                 session=None, think_s=None):
        self.number, self.arrival, self.prompt, self.output = number, arrival_ms, prompt, output
        self.priority, self.client = priority, client
        self.max_new = max_tokens or output     # the declared limit
        self.prefix_group, self.prefix_tokens = prefix_group, prefix_tokens
        self.ttft_slo_s, self.tpot_slo_s = ttft_slo_s, tpot_slo_s
        self.samples = samples          # answers, of equal length
        self.session = session
        self.think = None if think_s is None else round(think_s * 1000)
        self.next_turn = None           # the turn that waits for the end of this one
        self.waits = False
        self.of_group = prefix_tokens   # leading tokens of its group, those of its answer too
        self.out = 0            # tokens produced
        self.computed = 0       # tokens with K/V
        self.prefill = 0        # tokens to compute when it last left waiting
        self.blocks = 0         # on the device
        self.host_blocks = 0
        self.first_scheduled = self.first_token = self.finish = None
        self.preemptions = self.swap_outs = 0
        self.status = None

    @property
    def tokens(self):
        return self.prompt + self.out

    @property
    def todo(self):
        return self.tokens - self.computed

    @property
    def decodes(self):
        return self.computed >= self.prefill


class Step:
    """A plan's decisions: tokens of requests, and blocks moved."""

    def __init__(self):
        self.tokens = {}        # request -> new tokens, in the order of scheduling
        self.preempted = 0
        self.blocks_out = self.blocks_in = 0
        self.moved = False      # something was dropped or preempted
        self.for_nothing = []   # ended requests that decode once more: tokens that no request receives

    @property
    def empty(self):
        return not (self.tokens or self.blocks_out or self.blocks_in or self.for_nothing)

    @property
    def n_tokens(self):
        given = sum(n * (r.samples if r.decodes else 1) for r, n in self.tokens.items())
        return given + len(self.for_nothing)


class Scheduler:
    """Queues and blocks; a subclass defines `plan(step)`."""
    preempts = True         # random workloads must contain preemptions
    swaps = False
    fails_at_most = 0       # share of the workloads that may end with EngineFails

    def __init__(self, settings):
        self.s = settings
        self.free = settings['num_blocks']
        self.host_free = settings['host_blocks']
        self.waiting, self.running, self.swapped, self.done = [], [], [], []
        self.door = []          # arrivals that plans do not know of, where a subclass hides them
        self.now = 0

    # ---- blocks ----

    def blocks_for(self, tokens):
        return -(-tokens // self.s['block_tokens'])

    def lacks(self, r, tokens):
        return max(0, self.blocks_for(tokens) - r.blocks)

    def take(self, r, n):
        assert n <= self.free
        self.free -= n
        r.blocks += n

    def release(self, r):
        self.free += r.blocks
        r.blocks = 0

    # ---- actions of a plan ----

    def give(self, step, r, n):
        assert 0 < n <= r.todo and r not in step.tokens
        assert r.computed + n <= r.blocks * self.s['block_tokens']
        step.tokens[r] = n
        if r.first_scheduled is None:
            r.first_scheduled = self.now

    def admit(self, r, blocks):
        """Moves a request from waiting to running and gives it blocks."""
        self.waiting.remove(r)
        self.take(r, blocks)
        r.prefill = r.tokens
        self.running.append(r)

    def recompute(self, step, r):
        """Preempts a request; back_to_waiting puts it at the front of waiting unless a subclass overrides it."""
        step.tokens.pop(r, None)
        self.running.remove(r)
        self.release(r)
        r.computed = r.prefill = 0
        r.preemptions += 1
        step.preempted += 1
        step.moved = True
        self.back_to_waiting(r)

    def back_to_waiting(self, r):
        self.waiting.insert(0, r)

    def swap_out(self, step, r):
        if r.blocks > self.host_free or r.computed == 0:
            return self.recompute(step, r)
        step.tokens.pop(r, None)
        self.running.remove(r)
        r.host_blocks, n = r.blocks, r.blocks
        self.release(r)
        self.host_free -= n
        step.blocks_out += n
        r.preemptions += 1
        r.swap_outs += 1
        step.preempted += 1
        step.moved = True
        self.swapped.append(r)

    def swap_in(self, step, r, blocks):
        """Host blocks are given back once the plan is made: swap-outs of a step run first."""
        self.swapped.remove(r)
        self.take(r, blocks)
        step.blocks_in += r.host_blocks
        self.returned += r.host_blocks
        r.host_blocks = 0
        self.running.append(r)

    def drop(self, step, r, status):
        for queue in (self.waiting, self.swapped):
            if r in queue:
                queue.remove(r)
        self.host_free += r.host_blocks
        r.host_blocks = 0
        r.status = status
        step.moved = True
        self.done.append(r)

    # ---- life ----

    def arrive(self, r):
        slots = self.s['num_blocks'] * self.s['block_tokens']
        if r.prompt + r.output > self.s['max_model_len'] or r.prompt + r.output - 1 > slots:
            r.status = 'rejected'
            self.done.append(r)
        else:
            self.waiting.append(r)

    def make_plan(self):
        step = Step()
        self.returned = 0
        self.plan(step)
        self.host_free += self.returned
        return step

    def padding(self, step):
        """Work that no request receives: prompt tokens, decoding sequences, and the context that these read."""
        return 0, 0, 0

    def started(self, step):
        """A hook: the step runs."""

    def ended(self, step, begin, end):
        """A hook: the step has run; tokens are counted, finished requests still hold blocks."""

    def end(self, step, begin, end):
        finished = []
        for r, n in step.tokens.items():
            r.computed += n
            if r.computed == r.tokens:
                r.out += 1
                if r.first_token is None:
                    r.first_token = end
                if r.out == r.output:
                    finished.append(r)
        self.ended(step, begin, end)
        for r in finished:
            r.finish, r.status = end, 'finished'
            self.running.remove(r)
            self.release(r)
            self.left(r)
            self.done.append(r)

    def left(self, r):
        """A hook: the request has finished and released its blocks."""


def row_of(scheduler, step, cost):
    prefills = {r: n for r, n in step.tokens.items() if not r.decodes}
    decodes = [r for r in step.tokens if r.decodes]
    n_decodes = sum(r.samples for r in decodes)
    context = sum(r.samples * (r.computed + 1) for r in decodes)
    padded_tokens, padded_seqs, padded_context = scheduler.padding(step)
    duration = (cost['step'] + cost['prefill_token'] * (sum(prefills.values()) + padded_tokens) +
                cost['decode_seq'] * (n_decodes + padded_seqs) +
                cost['context_token'] * (context + padded_context))
    return {
        'start': scheduler.now, 'duration': duration,
        'prefill_tokens': sum(prefills.values()), 'decode_tokens': n_decodes,
        'prefill_seqs': len(prefills), 'decode_seqs': n_decodes, 'context_tokens': context,
        'running': len(scheduler.running), 'waiting': len(scheduler.waiting),
        'swapped': len(scheduler.swapped), 'preempted': step.preempted,
        'blocks_out': step.blocks_out, 'blocks_in': step.blocks_in,
        'kv_used_blocks': scheduler.s['num_blocks'] - scheduler.free,
    }


def link_turns(requests):
    """Links each turn to the previous one of its session, and sets the tokens that its prompt repeats."""
    last = {}
    for r in requests:
        before = last.get(r.session)
        if before and r.think is not None:
            before.next_turn, r.waits = r, True
        if (before and r.prefix_group == before.prefix_group and before.samples == 1 and
                before.prompt == before.prefix_tokens < r.prefix_tokens):
            before.of_group = min(before.prompt + before.output, r.prefix_tokens)
        if r.session:
            last[r.session] = r


class Arrivals:
    """Arrivals at the trace's times, and of turns after the end of the previous turn."""

    def __init__(self, scheduler, requests):
        self.scheduler, self.n_come, self.n_gone = scheduler, 0, 0
        link_turns(requests)
        self.todo = sorted((r for r in requests if not r.waits), key=lambda r: (r.arrival, r.number))

    def release(self, now):
        for r in self.scheduler.done[self.n_gone:]:
            if r.next_turn:
                r.next_turn.arrival = now + r.next_turn.think
                self.todo.append(r.next_turn)
        self.n_gone = len(self.scheduler.done)
        self.todo.sort(key=lambda r: (r.arrival, r.waits))

    def come(self, before):
        while self.todo and self.todo[0].arrival < before:
            r = self.todo.pop(0)
            r.number, self.n_come = self.n_come, self.n_come + 1
            self.scheduler.arrive(r)
            self.release(r.arrival)


def fly(scheduler, requests, cost):
    """Rows of steps.csv, and the reason for an early end: None, a complaint, or the engine's failure."""
    rows = []
    try:
        return rows, fly_into(rows, scheduler, requests, cost)
    except EngineFails as failure:
        return rows, failure


def fly_into(rows, scheduler, requests, cost):
    """Runs to the end. At equal times: ends, then arrivals, then plans."""
    arrivals = Arrivals(scheduler, requests)
    preempted = 0               # by plans without a step; the next step reports them
    while (arrivals.todo or scheduler.door or scheduler.waiting or scheduler.running or
            scheduler.swapped):
        arrivals.come(scheduler.now + 1)
        step = scheduler.make_plan()
        while step.empty and step.moved:
            preempted += step.preempted
            step = scheduler.make_plan()
        arrivals.release(scheduler.now)
        if step.empty:
            wake = scheduler.wake_at() if hasattr(scheduler, 'wake_at') else None
            moments = [r.arrival for r in arrivals.todo[:1]] + ([] if wake is None else [wake])
            if not moments:
                if scheduler.waiting or scheduler.running or scheduler.swapped:
                    return 'stalled'
                break
            scheduler.now = min(moments)
            continue
        row = row_of(scheduler, step, cost)
        row['preempted'] += preempted
        preempted = 0
        scheduler.started(step)
        rows.append(row)
        if len(rows) == MOST_STEPS:
            return 'does not end'
        begin, end = scheduler.now, scheduler.now + row['duration']
        arrivals.come(end)
        scheduler.now = end
        scheduler.end(step, begin, end)
        arrivals.release(end)
    if preempted:
        rows.append({k: 0 for k in rows[-1]} | {'start': end, 'preempted': preempted})
    return None
