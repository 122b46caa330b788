"""Engines that estimate the memory of a whole request before they start it: TGI, LightLLM, TensorRT-LLM."""

from ahead import PlannedAhead
from machine import Scheduler


class Reserving(Scheduler):
    """Memory is reserved for the whole request, so there are no preemptions."""
    preempts = False

    @staticmethod
    def columns(rng, prompt, output):
        return {'max_tokens': output + rng.choice([0, 0, 3, 30])}

    def reservation(self, r):
        return self.blocks_for(min(self.life(r), self.s['max_model_len']))

    def decodes(self, step):
        for r in self.running:
            if r.decodes:
                self.give(step, r, 1)


class Tgi(Reserving):
    """text-generation-inference v3, backends/v3/src/queue.rs and backend.rs, with chunking."""
    preset = 'tgi'

    @staticmethod
    def draw(rng):
        return {'max_seqs': rng.choice([2, 4096]), 'budget': rng.choice([3, 8, 30, 4096])}

    keys = {'max_seqs': 'serving.batching.max_seqs', 'budget': 'serving.batching.chunk_tokens'}

    def life(self, r):
        return r.prompt + r.max_new - 1

    def plan(self, step):
        self.decodes(step)
        for r in self.running:
            n = min(r.todo, self.s['budget'] - step.n_tokens)
            if not r.decodes and n > 0:
                self.give(step, r, n)
        while self.waiting and len(self.running) < self.s['max_seqs']:
            r = self.waiting[0]
            n = min(r.todo, self.s['budget'] - step.n_tokens)
            if n <= 0:
                break
            if self.reservation(r) > self.s['num_blocks']:
                self.drop(step, r, 'rejected')
                continue
            if self.reservation(r) > self.free:
                break
            self.admit(r, self.reservation(r))
            self.give(step, r, n)


class TgiNoChunking(Tgi):
    """TGI without chunking: a new batch interrupts the decodes when enough requests wait, or after a number of
    decodes. When it has joined the running batch, at least one decode follows (batching_task)."""
    preset = 'tgi-no-chunking'
    decodes_since = 0
    joined = False

    @staticmethod
    def draw(rng):
        return {'max_seqs': rng.choice([2, 4096]), 'budget': rng.choice([30, 60, 4096]),
                'between': rng.choice([0, 3, 20]), 'ratio': rng.choice([0.3, 1.2])}

    keys = {'max_seqs': 'serving.batching.max_seqs',
            'budget': 'serving.batching.max_batched_tokens',
            'between': 'serving.batching.decodes_between',
            'ratio': 'serving.batching.waiting_ratio'}

    def next_batch(self, min_size):
        """The requests that would join and the requests to drop; both empty if the batch is too small."""
        batch, dropped, tokens, free = [], [], 0, self.free
        for r in self.waiting:
            if len(self.running) + len(batch) >= self.s['max_seqs']:
                break
            need = self.reservation(r)
            if r.todo > self.s['budget'] or (tokens + r.todo <= self.s['budget'] and
                                             need > self.s['num_blocks']):
                dropped.append(r)
                continue
            if tokens + r.todo > self.s['budget'] or need > free:
                break
            batch.append(r)
            tokens += r.todo
            free -= need
        return (batch, dropped) if len(batch) >= min_size else ([], [])

    def prefills(self, step, min_size):
        batch, dropped = self.next_batch(min_size)
        for r in dropped:
            self.drop(step, r, 'rejected')
        for r in batch:
            self.admit(r, self.reservation(r))
            self.give(step, r, r.todo)

    def plan(self, step):
        enough = int(self.s['ratio'] * len(self.running))
        decode_is_due = self.running and self.joined and self.decodes_since == 0
        if not self.running or (not decode_is_due and self.decodes_since >= self.s['between']):
            self.prefills(step, 0)
        elif not decode_is_due and len(self.waiting) >= enough:
            self.prefills(step, enough)
        if not step.tokens:
            self.decodes(step)

    def started(self, step):
        prefill = any(not r.decodes for r in step.tokens)
        self.decodes_since = 0 if prefill else self.decodes_since + 1
        if prefill:
            self.joined = any(r.decodes for r in self.running)


class LightLLM(Scheduler):
    """lightllm/server/router, 2024: manager.py, req_queue/continues_batch/impl.py and ../io_struct.py: the
    estimated peak of the pool stays below its size."""
    preset = 'lightllm'
    has_wait_tokens = 0

    @staticmethod
    def draw(rng):
        return {'max_seqs': rng.choice([2, 1000]), 'num_blocks': rng.randint(10, 100),
                'block_tokens': rng.choice([1, 1, 4]), 'max_model_len': rng.choice([20, 40, 64]),
                'between': rng.choice([0, 1, 3, 10]),
                'router_token_ratio': 0, 'router_max_new_token_len': 1024}

    columns = Reserving.columns
    keys = {'max_seqs': 'serving.batching.max_seqs', 'between': 'serving.batching.decodes_between'}

    @property
    def total(self):
        return self.s['num_blocks'] * self.s['block_tokens']

    def tuple_tokens(self, r, is_busy, running):
        """get_tuple_tokens of NormalReq: tokens now, and tokens to come."""
        most = r.max_new
        if not is_busy:
            most = min(most, max(int(1.1 * r.out), self.s['router_max_new_token_len']))
        if running:
            return r.prompt + r.out, max(0, most - r.out - 1)
        return r.prompt + r.out + 1, max(0, most - r.out - 1 - 1)

    def is_busy(self):
        used = self.s['num_blocks'] - self.free
        return used / self.s['num_blocks'] >= self.s['router_token_ratio']

    @staticmethod
    def peak(cache_len_list):
        cumulative = peak = 0
        for i, (now, left) in enumerate(sorted(cache_len_list, key=lambda e: -e[1]), 1):
            cumulative += now
            peak = max(peak, left * i + cumulative)
        return peak

    def prefills(self, step):
        budget = max(self.total // 6, self.s['max_model_len'])
        is_busy = self.is_busy()
        cache_len_list = [self.tuple_tokens(r, is_busy, True) for r in self.running]
        while self.waiting and len(self.running) < self.s['max_seqs']:
            r = self.waiting[0]
            if step.n_tokens + r.tokens > budget >= r.tokens:
                break
            if r.tokens > budget or sum(self.tuple_tokens(r, True, False)) >= self.total:
                self.drop(step, r, 'failed' if r.first_scheduled is not None else 'rejected')
                continue
            cache_len_list.append(self.tuple_tokens(r, is_busy, False))
            if self.peak(cache_len_list) >= self.total or self.blocks_for(r.tokens) > self.free:
                break
            self.admit(r, self.blocks_for(r.tokens))
            self.give(step, r, r.tokens)

    def decodes(self, step):
        queue = list(self.running)
        while queue:
            r = queue.pop(0)
            while self.lacks(r, r.computed + 1) > self.free:
                last = queue.pop() if queue else r
                self.recompute(step, last)
                if last is r:
                    break
            else:
                self.take(r, self.lacks(r, r.computed + 1))
                self.give(step, r, 1)

    def plan(self, step):
        """If a plan drops a request, the next plan belongs to the same _step."""
        self.tried = self.has_wait_tokens >= self.s['between']
        if not self.running or self.tried:
            self.prefills(step)
        if not step.tokens:
            self.decodes(step)

    def started(self, step):
        if any(not r.decodes for r in step.tokens):
            self.has_wait_tokens = 0
        else:
            self.has_wait_tokens = 1 if self.tried or step.preempted else self.has_wait_tokens + 1


class LightLLMGuesses(LightLLM):
    """With a --router_token_ratio: while the pool is not busy, a guess stands for the length of answers."""
    preset = 'lightllm'
    beside = ' with guesses'

    @staticmethod
    def draw(rng):
        return {**LightLLM.draw(rng), 'block_tokens': 1, 'num_blocks': rng.randint(45, 120),
                'max_model_len': rng.choice([40, 64]), 'between': rng.choice([0, 1, 3]),
                'router_token_ratio': rng.choice([0.1, 0.5, 0.9, 1]),
                'router_max_new_token_len': rng.choice([1, 4, 15, 1024])}

    keys = {**LightLLM.keys, 'router_token_ratio': 'serving.admit.busy_frac',
            'router_max_new_token_len': 'serving.admit.likely_tokens'}


class TrtNoEvict(Reserving):
    """batch_manager/capacityScheduler.h and microBatchScheduler.h of 2024-09."""
    preset = 'trtllm-no-evict'

    @staticmethod
    def draw(rng):
        return {'max_seqs': rng.choice([1, 2, 4, 2048]), 'budget': rng.choice([16, 30, 60, 8192]),
                'chunking': rng.choice(['none', 'first-come', 'equal-progress']),
                'unit': rng.choice([0, 0, 3, 10])}

    keys = {'max_seqs': 'serving.batching.max_seqs',
            'budget': 'serving.batching.max_batched_tokens',
            'chunking': 'serving.batching.chunking',
            'unit': 'serving.batching.chunk_unit_tokens'}

    def life(self, r):
        return r.prompt + r.max_new

    @property
    def unit(self):
        return self.s['unit'] or self.s['block_tokens']

    def todo(self, r):
        """Tokens of the prompt that are not computed."""
        return r.todo

    def share(self, r, left):
        """A whole prompt, or a chunk of whole units; the last chunk may be shorter."""
        unit = self.unit
        if self.todo(r) <= left:
            return self.todo(r)
        return max(0, left // unit * unit) if self.s['chunking'] == 'first-come' else 0

    def too_long(self, r):
        return self.s['chunking'] == 'none' and self.todo(r) > self.s['budget']

    def may_join(self):
        return True

    def pending(self, step):
        while self.waiting and len(self.running) < self.s['max_seqs']:
            r = self.waiting[0]
            n = self.share(r, self.s['budget'] - step.n_tokens)
            if self.too_long(r) or (n and self.reservation(r) > self.s['num_blocks']):
                self.drop(step, r, 'rejected')
                continue
            if n == 0 or self.reservation(r) > self.free:
                break
            self.admit(r, self.reservation(r))
            self.give(step, r, n)

    def first_units(self, contexts):
        return sum(min(self.todo(r), self.unit) for r in contexts)

    def join_for_a_unit(self, step, contexts, left):
        """Admits waiting requests, in order, while a first unit of each fits beside those of the contexts."""
        while self.waiting and len(self.running) < self.s['max_seqs']:
            r = self.waiting[0]
            if self.first_units(contexts + [r]) > left:
                break
            if self.reservation(r) > self.s['num_blocks']:
                self.drop(step, r, 'rejected')
                continue
            if self.reservation(r) > self.free:
                break
            self.admit(r, self.reservation(r))
            contexts.append(r)

    def grow_equally(self, step, contexts, left):
        """Gives each context one more unit per round while the budget lasts."""
        chunk = {r: 0 for r in contexts}
        grown = True
        while grown:
            grown = False
            for r in contexts:
                more = min(self.unit, self.todo(r) - chunk[r])
                if more and sum(chunk.values()) + more <= left:
                    chunk[r] += more
                    grown = True
        for r in contexts:
            if chunk[r]:
                self.give(step, r, chunk[r])

    def plan(self, step):
        joins = self.may_join()
        self.decodes(step)
        left = self.s['budget'] - step.n_tokens
        if self.s['chunking'] == 'equal-progress':
            contexts = [r for r in self.running if not r.decodes]
            if joins:
                self.join_for_a_unit(step, contexts, left)
            self.grow_equally(step, contexts, left)
            return
        for r in self.running:
            n = self.share(r, self.s['budget'] - step.n_tokens)
            if not r.decodes and n > 0:
                self.give(step, r, n)
        if joins:
            self.pending(step)


class TrtStatic(TrtNoEvict):
    """STATIC_BATCH: pending requests start only when no request runs."""
    preset = 'trtllm-static'

    def may_join(self):
        return not self.running


class TrtMaxUtilization(TrtNoEvict):
    """MAX_UTILIZATION: a request needs the blocks of its next step, a new one those of its whole prompt. The victim
    is the last running request in order of arrival."""
    preset = 'trtllm-max-utilization'
    preempts = True

    def back_to_waiting(self, r):
        self.waiting.append(r)
        self.waiting.sort(key=lambda r: (r.arrival, r.number))

    def generates(self, r):
        """True of a request that takes a token a step: its prompt is computed."""
        return r.decodes

    def left_for_contexts(self, step, ahead):
        """The budget left for contexts; a token is set aside for each decode that is still to be planned."""
        decoding = sum(1 for other in ahead if other in self.running and self.generates(other))
        return self.s['budget'] - step.n_tokens - decoding

    def finds_room(self, step, r, need, active):
        """Pauses running requests that this plan has not reached, the last first, and finally r itself."""
        while need > self.free:
            behind = [other for other in active if other in self.running]
            victim = behind[-1] if behind else r
            if victim in self.running:
                self.recompute(step, victim)
                self.paused.add(victim)
            if victim is r:
                return False
        return True

    def start(self, step, r, active):
        """False ends the plan. A request without tokens ends only the admissions behind it (`joins`)."""
        equal = self.s['chunking'] == 'equal-progress'
        left = self.left_for_contexts(step, active)
        contexts = [other for other in self.running if not self.generates(other)]
        tokens = self.share(r, left)
        if len(self.running) >= self.s['max_seqs']:
            return False
        need = self.blocks_for(self.todo(r))
        if self.too_long(r):
            self.drop(step, r, 'failed' if r.first_scheduled is not None else 'rejected')
            return True
        if self.first_units(contexts + [r]) > left if equal else tokens == 0:
            self.joins = False
            return self.s['chunking'] != 'none'
        if need > self.s['num_blocks']:
            self.drop(step, r, 'failed' if r.first_scheduled is not None else 'rejected')
            return True
        if not self.finds_room(step, r, need, active):
            return False
        self.admit(r, need)
        if not equal:
            self.give(step, r, tokens)
        return True

    def go_on(self, step, r, active):
        """False if the request was paused."""
        if self.generates(r):
            if not self.finds_room(step, r, self.lacks(r, r.computed + 1), active):
                return False
            self.take(r, self.lacks(r, r.computed + 1))
            self.give(step, r, 1)
        elif self.s['chunking'] != 'equal-progress':
            n = self.share(r, self.left_for_contexts(step, active))
            if n:
                self.give(step, r, n)
        return True

    def plan(self, step):
        active = sorted(self.running + self.waiting, key=lambda r: (r.arrival, r.number))
        self.paused, self.joins = set(), True
        while active:
            r = active.pop(0)
            if r in self.paused:
                break
            if r in self.running:
                if not self.go_on(step, r, active):
                    break
            elif self.joins and not self.start(step, r, active):
                break
        if self.s['chunking'] == 'equal-progress':
            contexts = [r for r in self.running if not self.generates(r)]
            self.grow_equally(step, contexts, self.s['budget'] - step.n_tokens)


class GenerationToComplete(PlannedAhead):
    """tensorrt_llm/_torch/pyexecutor/py_executor.py of 1.2, _executor_loop_overlap. A request that reaches its limit with
    the step in flight is GENERATION_TO_COMPLETE: the capacity scheduler passes it over, so that it has no seat and does
    not pause, and its blocks are not free yet."""

    def plan_unknowing(self, step):
        to_complete = [r for r in self.ended_now if self.at_limit(r)]
        self.running = [r for r in self.running if r not in to_complete]
        super().plan_unknowing(step)
        self.running += to_complete     # what is learnt next takes them off


class Trt12NoEvict(GenerationToComplete, TrtNoEvict):
    preset = 'trtllm-1.2-no-evict'


class Trt12MaxUtilization(GenerationToComplete, TrtMaxUtilization):
    """LlmRequest::pause(max_input_len): of a paused request no more tokens than that are its prompt. The others it
    generates again, a token a step, and these are not sent."""
    preset = 'trtllm-1.2-max-utilization'

    @staticmethod
    def draw(rng):
        settings = {**TrtMaxUtilization.draw(rng), 'kept': rng.choice([0, 1, 4, 10, 2048])}
        # a model so short that many an answer ends at its length, while others lack a block
        short = {'max_model_len': 10, 'block_tokens': 1, 'num_blocks': rng.randint(12, 24)}
        return {**settings, **rng.choice([{}, {}, short])}

    keys = {**TrtMaxUtilization.keys, 'kept': 'serving.batching.paused_prompt_tokens'}

    @staticmethod
    def more_sets(settings):
        return {'serving.admit.paused_prompt_tokens': settings['kept']}

    def prompt(self, r):
        """The tokens that are its prompt since it was last paused."""
        return min(r.tokens, self.s['kept']) if r.preemptions and self.s['kept'] else r.tokens

    def generates(self, r):
        return r.decodes or r.computed >= self.prompt(r)

    def todo(self, r):
        return self.prompt(r) - r.computed
