"""Fairness between clients: S-LoRA's engine in the version of the VTC artifact, and the orders of its queue.

The artifact has one token a block and never overcommits. Here a block may hold more, so blocks may run out;
the request that was admitted last is then paused and goes to the front of the queue.
"""

from collections import deque
from fractions import Fraction

from machine import Scheduler


class SLora(Scheduler):
    """slora/server/router/manager.py and req_queue.py: first come, first served."""
    preset = 's-lora'

    @staticmethod
    def draw(rng):
        return {'max_seqs': rng.choice([1, 2, 4, 1000]), 'between': rng.choice([0, 1, 3, 10])}

    keys = {'max_seqs': 'serving.batching.max_seqs', 'between': 'serving.batching.decodes_between'}

    def __init__(self, settings):
        super().__init__(settings)
        self.pool = settings['num_blocks'] * settings['block_tokens']
        self.budget = max(self.pool // 6, settings['max_model_len'])
        self.n_decodes = 0
        self.paused = []        # stand before all other waiting requests

    # ---- the estimate: (tokens now, tokens to come), most to come first ----

    @staticmethod
    def to_come(r):
        return max(0, r.output - r.out - 1)

    def peak(self, step, newcomer):
        lives = [(self.to_come(r), r.tokens + (r in step.tokens)) for r in self.running]
        lives.append((self.to_come(newcomer), newcomer.tokens + 1))
        lives.sort(key=lambda life: -life[0])
        held, peak = 0, 0
        for i, (left, now) in enumerate(lives):
            held += now
            peak = max(peak, left * (i + 1) + held)
        return peak

    def turned_away(self, r):
        return r.tokens + 1 + self.to_come(r) >= self.pool

    def never_fits(self, step, r):
        return r.tokens > self.budget or (step.n_tokens + r.tokens <= self.budget and
                                          self.turned_away(r))

    def fits(self, step, r):
        return (len(self.running) < self.s['max_seqs'] and
                step.n_tokens + r.tokens <= self.budget and self.peak(step, r) < self.pool and
                self.blocks_for(r.tokens) <= self.free)

    # ---- the queue ----

    def back_to_waiting(self, r):
        self.paused.insert(0, r)
        self.waiting.insert(0, r)

    def queued(self):
        return [r for r in self.waiting if r not in self.paused]

    def choose(self):
        return self.queued()[0]

    def start(self, step, r):
        self.admit(r, self.blocks_for(r.tokens))
        self.give(step, r, r.tokens)
        if r in self.paused:
            self.paused.remove(r)
        else:
            self.first_start(r)

    def first_start(self, r):
        """A hook: the request starts for the first time, and its prompt is charged."""

    def fill(self, step):
        while self.waiting and len(self.running) < self.s['max_seqs']:
            r = self.paused[0] if self.paused else self.choose()
            if self.never_fits(step, r):
                self.drop(step, r, 'failed' if r.first_scheduled is not None else 'rejected')
            elif self.fits(step, r):
                self.start(step, r)
            else:
                break

    def drop(self, step, r, status):
        if r in self.paused:
            self.paused.remove(r)
        super().drop(step, r, status)

    # ---- turns ----

    def plan(self, step):
        if self.waiting and (not self.running or self.n_decodes >= self.s['between']):
            self.fill(step)
        if step.tokens:
            return
        queue = list(self.running)
        while queue:
            r = queue.pop(0)
            while self.lacks(r, r.computed + 1) > self.free:
                self.recompute(step, queue.pop() if queue else r)
                if r not in self.running:
                    break
            else:
                self.take(r, self.lacks(r, r.computed + 1))
                self.give(step, r, 1)

    def started(self, step):
        self.n_decodes = 0 if any(not r.decodes for r in step.tokens) else self.n_decodes + 1


class Rpm(SLora):
    """lshare_req_queue.py: a client's requests beyond a limit within a minute are turned away."""
    preset = 'vtc-rpm'

    @staticmethod
    def draw(rng):
        return {**SLora.draw(rng), 'max_rpm': rng.choice([1, 2, 5])}

    keys = {**SLora.keys, 'max_rpm': 'serving.admit.0.max_rpm'}

    def __init__(self, settings):
        super().__init__(settings)
        self.accepted = {}
        self.over = set()

    def arrive(self, r):
        super().arrive(r)
        if r in self.done:
            return
        stamps = self.accepted.setdefault(r.client, [])
        if sum(r.arrival - at <= 60000 for at in stamps) >= self.s['max_rpm']:
            self.over.add(r)
        else:
            stamps.append(r.arrival)

    def turned_away(self, r):
        return r in self.over or super().turned_away(r)


class Vtc(SLora):
    """Algorithm 2 of the paper: vtc_req_queue.py."""
    preset = 'vtc'
    lift = True
    more_sets = {}

    def __init__(self, settings):
        super().__init__(settings)
        self.counter, self.average, self.seen = {}, {}, []
        self.expected = {}      # of requests that were charged

    def cost(self, x, y):
        return x + 2 * y

    def weight(self, client):
        return 1

    def charge(self, r, amount):
        self.counter[r.client] += Fraction(amount) / self.weight(r.client)

    def expects(self, r):
        return 0

    def arrive(self, r):
        others = {q.client for q in self.waiting if q.client != r.client}
        was_idle = all(q.client != r.client for q in self.waiting)
        super().arrive(r)
        if r in self.done:
            return
        if r.client not in self.seen:
            self.seen.append(r.client)
            self.counter[r.client] = Fraction(0)
        if was_idle and self.lift and others:
            least = min(self.counter[client] for client in others)
            self.counter[r.client] = max(self.counter[r.client], least)

    def choose(self):
        """Counters are compared in steps of 1/1024."""
        return min(self.queued(), key=lambda r: (
            (self.counter[r.client] * 1024 + Fraction(1, 2)).__floor__(),
            self.seen.index(r.client), r.arrival, r.number))

    def first_start(self, r):
        self.expected[r] = Fraction(self.expects(r))
        self.charge(r, self.cost(r.prompt, self.expected[r]))

    def ended(self, step, begin, end):
        for r in step.tokens:
            known = max(r.out - 1, self.expected[r])
            if r.out > known:
                self.charge(r, self.cost(r.prompt, r.out) - self.cost(r.prompt, known))

    def settle(self, r):
        if r.out < self.expected[r]:
            self.charge(r, self.cost(r.prompt, r.out) - self.cost(r.prompt, self.expected[r]))
        old = self.average.get(r.client)
        self.average[r.client] = (old * 4 + r.out) / 5 if old else Fraction(r.out)

    def left(self, r):
        self.settle(r)

    def drop(self, step, r, status):
        super().drop(step, r, status)
        if r in self.expected:
            self.settle(r)


class Lcf(Vtc):
    """lcf_req_queue.py."""
    preset = 'vtc-lcf'
    lift = False


class VtcOracle(Vtc):
    """vtc_oracle_req_queue.py."""
    preset = 'vtc-oracle'

    def expects(self, r):
        return r.output


class VtcPredict(Vtc):
    """vtc_pred_len_req_queue.py."""
    preset = 'vtc-predict'

    def expects(self, r):
        return self.average.get(r.client, 0)


class VtcProfile(Vtc):
    """vtc_req_queue.py, cost_func "profile"; coefficients of quarters, so that nothing is rounded."""
    preset = 'vtc-profile'
    more_sets = {'serving.order.base_cost': 1.5, 'serving.order.input_cost': 0.25,
                 'serving.order.output_cost': 0.5, 'serving.order.product_cost': 0.125,
                 'serving.order.square_cost': 0.25}

    def cost(self, x, y):
        return (Fraction(3, 2) + Fraction(x, 4) + Fraction(y) / 2 + Fraction(x) * y / 8 +
                Fraction(y) * y / 4)


class VtcWeighted(Vtc):
    """vtc_req_queue.py, --fair-weights; powers of two, so that nothing is rounded."""
    preset = 'vtc-weighted'
    more_sets = {'serving.order.weights': '1 2 4'}

    def weight(self, client):
        return (1, 2, 4, 1)[client]


class Drr(SLora):
    """mdrr_req_queue.py: clients take turns."""
    preset = 'vtc-drr'

    @staticmethod
    def draw(rng):
        """No request is rejected in a turn: inflight's engine learns of rejections only after the step."""
        block = rng.choice([1, 4, 16])
        return {**SLora.draw(rng), 'block_tokens': block, 'num_blocks': -(-rng.randint(42, 90) // block),
                'max_model_len': 40}

    def __init__(self, settings):
        super().__init__(settings)
        self.round, self.deficit = deque(), {}
        self.quantum = self.pool / 20   # floating point, as in the artifact: zero is not exact
        self.refused = None

    def of(self, client):
        return [r for r in self.queued() if r.client == client]

    def arrive(self, r):
        super().arrive(r)
        if r not in self.done:
            self.deficit.setdefault(r.client, 0.0)
            if r.client not in self.round:
                self.round.append(r.client)

    def turn(self, step, client):
        """False if a request finds no room."""
        while self.deficit[client] > 0 and self.of(client):
            r = self.of(client)[0]
            if self.paused or len(self.running) >= self.s['max_seqs']:
                return False
            if self.never_fits(step, r):
                self.drop(step, r, 'rejected')
            elif not self.fits(step, r):
                return False
            else:
                self.start(step, r)
        return True

    def fill(self, step):
        if len(self.running) >= self.s['max_seqs']:
            return
        while self.paused:
            r = self.paused[0]
            if self.never_fits(step, r):
                self.drop(step, r, 'failed')
            elif self.fits(step, r):
                self.start(step, r)
            else:
                break
        while self.round:
            client = self.round.popleft()
            if client == self.refused and self.deficit[client] < 0:
                self.refused = None
                self.round.append(client)
                continue
            if self.deficit[client] <= 0:
                self.deficit[client] += self.quantum
            if not self.turn(step, client):
                self.round.appendleft(client)
                self.refused = client
                return
            if self.of(client) or self.deficit[client] < 0:
                self.round.append(client)

    def first_start(self, r):
        self.deficit[r.client] -= r.prompt

    def ended(self, step, begin, end):
        for r in step.tokens:
            self.deficit[r.client] -= 2
