"""Presets with a feature that is idle in these workloads: without guesses, without adapters, or with a budget of K/V above
every length, they plan as what they extend. With the feature at work they are held to the tables by pencil under tests/golden, and to random set-ups."""

from newest import VllmV1Sync
from schedulers import VllmV1
from sglang import SGLang


class VllmV1Eagle(VllmV1Sync):
    preset = 'vllm-v1-eagle'
    more_sets = {**getattr(VllmV1Sync, 'more_sets', {}), 'serving.draft': 'none'}


class VllmV1Ngram(VllmV1Eagle):
    preset = 'vllm-v1-ngram'


class VllmV1Lora(VllmV1):
    preset = 'vllm-v1-lora'
    keys = {name: key.replace('serving.admit.', 'serving.admit.1.') for name, key in VllmV1.keys.items()}


class SGLangEagle(SGLang):
    preset = 'sglang-eagle'
    more_sets = {**SGLang.more_sets, 'serving.draft': 'none'}


class SGLangEagleAdaptive(SGLangEagle):
    preset = 'sglang-eagle-adaptive'


class SnapKV(VllmV1Sync):
    preset = 'snapkv'


class PyramidKV(VllmV1Sync):
    preset = 'pyramidkv'


class H2O(VllmV1Sync):
    preset = 'h2o'


class StreamingLLM(VllmV1Sync):
    preset = 'streaming-llm'


# Tables by pencil and random set-ups alone: no slow scheduler has been written for them. Where a preset plans beside
# another replica or a tier, its base is compared.
NONE_YET = {'distserve-decode', 'distserve-prefill', 'sglang-pd-decode', 'sglang-pd-prefill', 'peft', 's-lora-abort',
            's-lora-bmm', 's-lora-cluster', 'sglang-hicache', 'trtllm-host-cache', 'vllm-v1-lmcache',
            'vllm-v1-offload'}
