"""vLLM v0.33: its changes to the scheduler of 2026-08, and a server that rejects requests."""

from cached import VllmV1AsyncCached, VllmV1Cached
from schedulers import VllmV1, VllmV1Async
from urgent import VllmV1Priority


class Rules(VllmV1):
    """vllm/v1/core/sched/scheduler.py, schedule; vllm/v1/engine/async_llm.py, check_admission."""
    walks_on = True

    @staticmethod
    def draw(rng):
        settings = VllmV1.draw(rng)
        return {**settings, 'threshold': rng.choice([0, 1, 4, 9]), 'adapts': rng.choice(['true', 'false']),
                'max_active': rng.choice([0, 0, 1, 2]) if settings['max_seqs'] > 1 else 0,
                'max_reqs': rng.choice([0, 0, 0, 2, 6]), 'max_tokens': rng.choice([0, 0, 0, 10, 60])}

    keys = {**VllmV1.keys, 'adapts': 'serving.batching.long_prefill_adapts',
            'max_active': 'serving.batching.max_active_seqs', 'max_reqs': 'serving.max_queued_reqs',
            'max_tokens': 'serving.max_queued_tokens'}

    def __init__(self, settings):
        super().__init__(settings)
        self.let_in = []

    def arrive(self, r):
        """The server knows ended requests and first tokens at once, before the scheduler does."""
        inside = [q for q in self.let_in if q.finish is None and q.status is None]
        prefilling = sum(q.prompt for q in inside if q.first_token is None)
        full = self.s['max_reqs'] and len(inside) + 1 > self.s['max_reqs']
        busy = self.s['max_tokens'] and prefilling >= self.s['max_tokens']
        super().arrive(r)
        if r.status is None and (full or busy):
            self.waiting.remove(r)
            self.drop_at_door(r)
        elif r.status is None:
            self.let_in.append(r)

    def drop_at_door(self, r):
        r.status = 'shed'
        self.done.append(r)

    def seats(self):
        return self.s['max_active'] or self.s['max_seqs']

    def threshold(self):
        n, threshold = len(self.running) + len(self.waiting), self.s['threshold']
        if n <= 1:
            return 0
        if threshold and self.s['adapts'] == 'true':
            return max(threshold, self.s['budget'] // n)
        return threshold


class VllmV1Sync(Rules):
    preset = 'vllm-v1-sync'


class VllmV1SyncCached(VllmV1Cached, Rules):
    preset = 'vllm-v1-sync'


class VllmV1Now(VllmV1Async, Rules):
    preset = 'vllm-v1'
    draw, keys = Rules.draw, Rules.keys


class VllmV1NowCached(VllmV1AsyncCached, Rules):
    preset = 'vllm-v1'
    draw, keys = Rules.draw, Rules.keys


class VllmV1November2026(VllmV1Now):
    preset = 'vllm-v1-2026-11'


class VllmV1AsyncNow(VllmV1Now):
    preset = 'vllm-v1-async'


class VllmV1PriorityNow(VllmV1Async, Rules, VllmV1Priority):
    preset = 'vllm-v1-priority'
    draw, keys = Rules.draw, Rules.keys


class VllmV1PriorityNowCached(VllmV1AsyncCached, Rules, VllmV1Priority):
    preset = 'vllm-v1-priority'
    draw, keys = Rules.draw, Rules.keys


class VllmV1PrioritySync(Rules, VllmV1Priority):
    beside = ', synchronous'
    preset = 'vllm-v1-priority'
    more_sets = {'serving.in_flight.ahead': '0'}


class VllmV1PrioritySyncCached(VllmV1Cached, VllmV1PrioritySync):
    beside = ' with its cache, synchronous'
    preset = 'vllm-v1-priority'
    more_sets = {**VllmV1Cached.more_sets, **VllmV1PrioritySync.more_sets}
