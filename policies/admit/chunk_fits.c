/* Admit when there is room, and take the blocks of the first chunk only, as vLLM v1 does
 * (vllm/v1/core/kv_cache_manager.py, allocate_slots). Room must be there for the whole prompt
 * (scheduler_reserve_full_isl, since 2026-03), or only for the chunk (before that: prompts that did
 * not fit were begun and preempted). The watermark (since 2026-06) counts only while other requests
 * are on the device; it is a share of all blocks, vLLM's null block included. */
#include "inflight/policy.h"

enum room_for { ROOM_FOR_PROMPT, ROOM_FOR_CHUNK };

struct chunk_fits {
    int32_t room_for;
    double watermark_frac;
};

static const struct ifl_param params[] = {
    {"room_for", IFL_CHOICE, offsetof(struct chunk_fits, room_for), ROOM_FOR_PROMPT, 0, 0,
     "prompt|chunk", "", "part for which blocks must be free; only those of the chunk are taken"},
    {"watermark_frac", IFL_REAL, offsetof(struct chunk_fits, watermark_frac), 0, 0, 1, NULL, "",
     "share of all blocks, with the null block, that stays free if any request is running"},
};

/* With contiguous blocks a prompt would start over at its second chunk, for ever. */
static int refuse_contiguous(void *self, const struct ifl_limits *limits, struct ifl_error *error)
{
    (void)self;
    if (!limits->contiguous)
        return 0;
    return ifl_fail(error, IFL_E_INPUT,
                    "serving.admit.policy chunk-fits takes blocks as they are needed, expected one "
                    "that takes all at once (reserve) or serving.kv.allocator paged");
}

static struct ifl_admission ask(const void *self, const struct ifl_view *view,
                                struct ifl_step *step, const struct ifl_request *r, int32_t n)
{
    const struct chunk_fits *p = self;
    const int32_t n_blocks = view->limits->n_blocks;
    const int32_t chunk = ifl_n_slots(r) + n;
    const int32_t need =
        ifl_need(step, r, p->room_for == ROOM_FOR_PROMPT ? ifl_n_tokens(r) : chunk);
    const double all_blocks = (double)n_blocks + 1;
    const int32_t watermark =
        step->n_running_requests > 0 ? (int32_t)(p->watermark_frac * all_blocks) : 0;
    if (need > n_blocks)
        return ifl_admission(IFL_NEVER_FITS, 0);
    const bool fits = need + watermark <= step->n_free_blocks;
    return ifl_admission(fits ? IFL_YES : IFL_NO_BLOCKS, chunk);
}

static const struct ifl_admit_ops ops = {ask};

const struct ifl_policy policy_admit_chunk_fits = {
    .kind = IFL_ADMIT,
    .name = "chunk-fits",
    .doc = "the prompt, or its first chunk, must fit; only the chunk's blocks are taken (vLLM v1)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct chunk_fits),
    .init = refuse_contiguous,
    .steady = ifl_always_steady,
    .ops.admit = &ops,
};
