"""vLLM's own scheduler in virtual time, as a "slow scheduler" for compare.py: the classes that an unpacked wheel
brings plan each step, a cost says how long it takes, and every token is what the workload says.

Nothing of vLLM is copied here. The executor is empty, so any CPU build of torch suffices. Settings of the
configuration objects that are not set here have the default of their own fields, or None.
"""

import collections
import hashlib
import inspect
import logging

import transformers

logging.disable(logging.WARNING)
# An early vLLM registers models that a later transformers has itself.
transformers.AutoConfig.register = staticmethod(lambda *_, **__: None)

import torch
import vllm
import vllm.v1.core.kv_cache_utils as kv_cache_utils
from vllm.config import CacheConfig, SchedulerConfig
from vllm.sampling_params import SamplingParams
from vllm.v1.core.sched.scheduler import Scheduler
from vllm.v1.kv_cache_interface import FullAttentionSpec, KVCacheConfig, KVCacheGroupSpec
from vllm.v1.outputs import ModelRunnerOutput
from vllm.v1.request import Request

from machine import MOST_STEPS, Arrivals

VERSION = vllm.__version__


def call(callee, like=None, **values):
    """Calls it with those of the values that it, or a similar class, has as parameters."""
    known = inspect.signature(like or callee).parameters
    return callee(**{name: value for name, value in values.items() if name in known})


class Config:
    """The values given, else the defaults of a class of vLLM's, else None."""

    def __init__(self, cls=None, **values):
        self.fields = getattr(cls, '__dataclass_fields__', {})
        self.__dict__.update(values)

    def __getattr__(self, name):
        default = self.fields[name].default if name in self.fields else None
        default = getattr(default, 'default', default)
        return None if 'MISSING' in repr(default) or 'Undefined' in repr(default) else default


def config_of(settings, asynchronous, priority):
    budget = settings['budget']
    scheduler = Config(
        SchedulerConfig, max_num_seqs=settings['max_seqs'], max_num_batched_tokens=budget,
        max_num_scheduled_tokens=None if 'max_num_scheduled_tokens' in inspect.signature(SchedulerConfig).parameters
        else budget, long_prefill_token_threshold=settings['threshold'], watermark=settings['watermark_frac'],
        long_prefill_token_threshold_adaptive=settings.get('adapts') == 'true',
        max_num_active_seqs=settings.get('max_active') or None, max_num_queued_reqs=settings.get('max_reqs') or None,
        max_num_queued_tokens=settings.get('max_tokens') or None, policy='priority' if priority else 'fcfs', enable_chunked_prefill=True, chunked_prefill_enabled=True,
        async_scheduling=asynchronous, max_model_len=settings['max_model_len'],
        max_num_encoder_input_tokens=0, encoder_cache_size=0)
    cache = Config(
        CacheConfig, block_size=settings['block_tokens'], num_gpu_blocks=settings['num_blocks'] + 1,
        enable_prefix_caching=settings['cache'], prefix_caching_hash_algo='builtin')
    model = Config(None, max_model_len=settings['max_model_len'], is_encoder_decoder=False, is_multimodal_model=False,
                   supports_multimodal_inputs=False, uses_mrope=False, runner_type='generate', is_diffusion=False)
    parallel = Config(None, data_parallel_size=1, data_parallel_rank=0, data_parallel_index=0,
                      pipeline_parallel_size=1, tensor_parallel_size=1, decode_context_parallel_size=1,
                      prefill_context_parallel_size=1, world_size=1)
    return Config(None, scheduler_config=scheduler, cache_config=cache, model_config=model, parallel_config=parallel,
                  observability_config=Config(), structured_outputs_config=Config(),
                  decoding_config=Config(), ec_manager_config=Config(get_encoder_cache_manager_obj=lambda: None),
                  aux_output_config=Config(enabled=False), num_speculative_tokens=0, num_lookahead_tokens=0,
                  num_prefill_lookahead_tokens=0, max_concurrent_batches=2 if asynchronous else 1,
                  use_v2_model_runner=False, is_mm_encoder_only=False)


def pool_of(settings):
    block = call(FullAttentionSpec, block_size=settings['block_tokens'], num_kv_heads=1, head_size=1,
                 dtype=torch.float32, use_mla=False)
    return call(KVCacheConfig, num_blocks=settings['num_blocks'] + 1, tensors={}, kv_cache_tensors=[],
                kv_cache_groups=[KVCacheGroupSpec(['layer'], block)])


def scheduler_of(settings, asynchronous, priority):
    cls = Scheduler
    if asynchronous:
        from vllm.v1.core.sched.async_scheduler import AsyncScheduler
        cls = AsyncScheduler
    return call(cls, Scheduler, vllm_config=config_of(settings, asynchronous, priority), kv_cache_config=pool_of(settings),
                structured_output_manager=NoGrammar(), block_size=settings['block_tokens'])


class NoGrammar:
    """The methods of a structured_output_manager that the scheduler calls."""

    def should_advance(self, *_, **__):
        return False

    def accept_tokens(self, *_, **__):
        return True

    def grammar_bitmask(self, *_, **__):
        return None


def digest(value):
    return hashlib.sha256(repr(value).encode()).digest()


def block_hasher_of(settings):
    if not settings['cache'] or not hasattr(kv_cache_utils, 'get_request_block_hasher'):
        return None
    kv_cache_utils.init_none_hash(digest)
    return kv_cache_utils.get_request_block_hasher(settings['block_tokens'], digest)


class Planned:
    """A schedule() of vLLM's: its tokens, and its begin and end."""

    def __init__(self, output):
        self.output = output
        self.tokens = {}        # request of the workload -> new tokens, computed before, and whether it decodes
        self.preempted = []
        self.begin = self.end = None


class Engine:
    """The engine that compare.py's workloads fly through; `arrive` and `done` are as in machine.Scheduler."""

    def __init__(self, settings, asynchronous, priority):
        self.s = settings
        self.vllm = scheduler_of(settings, asynchronous, priority)
        self.hasher = block_hasher_of(settings)
        self.n_in_flight = 2 if asynchronous else 1
        self.carried = 0            # preemptions of plans without a step, which the next step tells of
        self.ids = {}
        self.of_name, self.of_vllm = {}, {}
        self.prefill = {}           # tokens to compute when it was last admitted
        self.door = []              # arrivals that vLLM has not been told of
        self.alive = []             # arrived, and not done
        self.done = []
        self.now = 0

    # ---- requests ----

    def token(self, r, i):
        name = ('group', r.prefix_group, i) if i < r.of_group else ('own', r.number, i)
        return self.ids.setdefault(name, len(self.ids) + 1)

    def lets_in(self):
        """The server before the scheduler, where there is a limit: AsyncLLM.check_admission of v0.33."""
        config = self.vllm.scheduler_config
        if not config.max_num_queued_reqs and not config.max_num_queued_tokens:
            return True
        from vllm.exceptions import GracefulHTTPError
        from vllm.v1.engine.async_llm import AsyncLLM
        from vllm.v1.engine.output_processor import OutputProcessor
        processor = Config(None, request_states={r: Config(None, prompt_len=r.prompt, is_prefilling=r.first_token is None)
                                                 for r in self.alive})
        server = Config(None, scheduler_config=config,
                        get_num_unfinished_requests=lambda: OutputProcessor.get_num_unfinished_requests(processor),
                        get_num_queued_tokens=lambda: OutputProcessor.get_num_queued_tokens(processor),
                        _record_admission_rejection=lambda _: None)
        try:
            AsyncLLM.check_admission(server)
            return True
        except GracefulHTTPError:
            return False

    def arrive(self, r):
        slots = self.s['num_blocks'] * self.s['block_tokens']
        if r.prompt + r.output > self.s['max_model_len'] or r.prompt + r.output - 1 > slots or not self.lets_in():
            r.status = 'rejected'
            self.done.append(r)
        else:
            self.alive.append(r)
            self.door.append(r)

    def tell(self):
        """vLLM reads its input queue between steps."""
        for r in self.door:
            params = SamplingParams(max_tokens=min(r.max_new, self.s['max_model_len'] - r.prompt),
                                    temperature=0.0, ignore_eos=True,
                                    stop_token_ids=[self.token(r, r.prompt + r.output - 1)])
            request = call(Request, request_id=f'{r.number:06d}',
                           prompt_token_ids=[self.token(r, i) for i in range(r.prompt)],
                           multi_modal_inputs=None, multi_modal_hashes=None, multi_modal_placeholders=None,
                           sampling_params=params, pooling_params=None, eos_token_id=None,
                           arrival_time=float(r.number), priority=r.priority, block_hasher=self.hasher)
            self.of_name[request.request_id], self.of_vllm[r] = r, request
            self.vllm.add_request(request)
        self.door = []

    # ---- steps ----

    def plan(self):
        before = list(self.vllm.running)
        planned = Planned(self.vllm.schedule())
        planned.preempted = [self.of_name[v.request_id] for v in before if v not in self.vllm.running]
        for name, n in planned.output.num_scheduled_tokens.items():
            r, request = self.of_name[name], self.of_vllm[self.of_name[name]]
            if request not in before:
                self.prefill[r] = request.num_tokens
            computed = request.num_computed_tokens - n
            planned.tokens[r] = n, computed, computed >= self.prefill[r]
        if not planned.tokens:
            self.carried += self.victims(planned)
        return planned

    @staticmethod
    def victims(planned):
        return sum(r.status is None for r in planned.preempted)

    def row(self, planned, cost):
        """As machine.row_of; a request that has ended decodes for nothing, which costs time alone."""
        prefills = [n for n, _, decodes in planned.tokens.values() if not decodes]
        contexts = {r: computed + n for r, (n, computed, decodes) in planned.tokens.items() if decodes}
        useful = [context for r, context in contexts.items() if r.status is None]
        on_device = [r for r in self.alive if self.of_vllm.get(r) in self.vllm.running]
        return {
            'start': planned.begin,
            'duration': cost['step'] + cost['prefill_token'] * sum(prefills) +
            cost['decode_seq'] * len(contexts) + cost['context_token'] * sum(contexts.values()),
            'prefill_tokens': sum(prefills), 'decode_tokens': len(useful),
            'prefill_seqs': len(prefills), 'decode_seqs': len(useful), 'context_tokens': sum(useful),
            'running': len(on_device), 'waiting': len(self.alive) - len(on_device), 'swapped': 0,
            'preempted': self.victims(planned) + self.carried, 'blocks_out': 0, 'blocks_in': 0,
            'kv_used_blocks': self.s['num_blocks'] - self.vllm.kv_cache_manager.block_pool.get_num_free_blocks(),
        }

    def start(self, planned, cost):
        planned.begin = self.now
        row = self.row(planned, cost)
        self.carried = 0
        planned.end = self.now + row['duration']
        for r in planned.tokens:
            if r.first_scheduled is None:
                r.first_scheduled = self.now
        self.note_preempted(planned)
        return row

    def note_preempted(self, planned):
        for r in planned.preempted:
            r.preemptions += r.status is None

    def sampled(self, r, n, computed):
        """The token at that place, if the step computes it."""
        reached = computed + n
        return [self.token(r, reached)] if reached >= r.prompt + r.out else []

    def learn(self, planned):
        if not planned.tokens:
            self.note_preempted(planned)
        names = list(planned.output.num_scheduled_tokens)
        samples = [self.sampled(r, n, computed) for r, (n, computed, _) in planned.tokens.items()]
        self.vllm.update_from_output(planned.output, call(
            ModelRunnerOutput, req_ids=names, req_id_to_index={name: i for i, name in enumerate(names)},
            sampled_token_ids=samples, spec_token_ids=None, logprobs=None, prompt_logprobs_dict={}))
        for r in planned.tokens:
            self.note(r)

    def note(self, r):
        if r.status is not None:
            return
        request = self.of_vllm[r]
        r.out = request.num_output_tokens
        if r.out > 0 and r.first_token is None:
            r.first_token = self.now
        if request.is_finished():
            assert r.out == r.output, f'request {r.number} has {r.out} tokens, expected {r.output}'
            r.finish, r.status = self.now, 'finished'
            self.alive.remove(r)
            self.done.append(r)


def fly(engine, requests, cost):
    """Rows of steps.csv, and the reason for an early end: vllm/v1/engine/core.py, step or step_with_batch_queue."""
    rows, queue = [], collections.deque()
    arrivals = Arrivals(engine, requests)

    def work():
        return engine.door or engine.vllm.has_requests() or queue

    def advance(to):
        arrivals.come(to + 1)
        engine.now = to

    idle = 0
    while True:
        advance(engine.now)
        arrivals.release(engine.now)
        advance(engine.now)
        if not work():
            if not arrivals.todo:
                return rows, None
            engine.now = arrivals.todo[0].arrival
            continue
        engine.tell()
        if engine.vllm.has_requests():
            planned = engine.plan()
            queue.append(planned)
            idle = 0 if planned.tokens or any(p.tokens for p in queue) else idle + 1
            if planned.tokens and not any(p.tokens for p in list(queue)[:-1]):
                rows.append(engine.start(planned, cost))
            if len(queue) < engine.n_in_flight and (planned.tokens or engine.vllm.has_requests()):
                continue
        first = queue.popleft()
        if first.tokens:
            arrivals.come(first.end)        # at equal times steps end first
            engine.now = first.end
        engine.learn(first)
        arrivals.release(engine.now)
        if queue and queue[0].tokens and queue[0].begin is None:
            advance(engine.now)
            rows.append(engine.start(queue[0], cost))
        if len(rows) > MOST_STEPS:
            return rows, 'does not end'
        if idle > 4:
            if arrivals.todo:
                advance(arrivals.todo[0].arrival)
                idle = 0
            elif engine.alive:
                return rows, 'stalled'
