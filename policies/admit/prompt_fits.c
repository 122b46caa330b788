/* Admit when the whole prompt fits and a watermark of blocks stays free, as vLLM's block manager
 * v1 does (can_allocate, can_swap_in). The watermark keeps admissions from causing preemptions. In
 * vLLM a swapped request asks for one more block a sequence, even if it needs none; in swiftLLM for
 * the blocks that its next token needs. */
#include "inflight/minmax.h"
#include "inflight/policy.h"

enum swap_in_asks { SWAP_IN_ONE_MORE, SWAP_IN_TOUCHED };
enum hits { HITS_SAVED, HITS_ASKED_FOR };

struct prompt_fits {
    double watermark_frac;
    int32_t swap_in_asks;
    int32_t hits;
    int32_t paused_prompt_tokens;
};

static const struct ifl_param params[] = {
    {"watermark_frac", IFL_REAL, offsetof(struct prompt_fits, watermark_frac), 0.01, 0, 1, NULL, "",
     "share of all blocks that an admission leaves free"},
    {"swap_in_asks", IFL_CHOICE, offsetof(struct prompt_fits, swap_in_asks), SWAP_IN_ONE_MORE, 0, 0,
     "one-more|touched", "",
     "free blocks that a swapped request needs: its own and one more per sequence (block manager "
     "v1), or those of its next token"},
    {"hits", IFL_CHOICE, offsetof(struct prompt_fits, hits), HITS_SAVED, 0, 0, "saved|asked-for",
     "",
     "cached blocks of a prompt: not needed, only the other blocks must be free (nano-vLLM), or as "
     "many blocks must be free as without a cache (vLLM v0)"},
    {"paused_prompt_tokens", IFL_INT, offsetof(struct prompt_fits, paused_prompt_tokens), 0, 0,
     1 << 30, NULL, "tokens",
     "most tokens of a paused request that count as its prompt, as in batching capacity; 0: no "
     "limit"},
};

static int32_t prompt_of(const struct prompt_fits *p, const struct ifl_request *r)
{
    const int32_t n_tokens = ifl_n_tokens(r);
    return IFL_RARE(p->paused_prompt_tokens > 0) && r->n_preempted > 0
               ? ifl_min(n_tokens, p->paused_prompt_tokens)
               : n_tokens;
}

/* Sequences of a group share the prompt: its whole blocks count once. */
static int32_t blocks_asked(const struct prompt_fits *p, const struct ifl_view *view,
                            struct ifl_step *step, const struct ifl_request *r)
{
    const int32_t block_tokens = view->limits->block_tokens;
    const int32_t need = ifl_need(step, r, prompt_of(p, r));
    if (p->hits == HITS_SAVED)
        return need;
    const int32_t whole = (prompt_of(p, r) + block_tokens - 1) / block_tokens;
    return ifl_max(whole, need);
}

IFL_APART static struct ifl_admission
ask_swapped(const struct prompt_fits *p, const struct ifl_view *view, struct ifl_step *step,
            const struct ifl_request *r, int32_t n, int32_t watermark)
{
    const int32_t n_blocks = view->limits->n_blocks;
    const int32_t need = p->swap_in_asks == SWAP_IN_TOUCHED ? ifl_need(step, r, ifl_n_slots(r) + n)
                                                            : r->n_host_blocks + r->n_seqs;
    if (n_blocks - need < watermark)
        return ifl_admission(IFL_NEVER_FITS, 0);
    const bool fits = step->n_free_blocks - need >= watermark;
    return ifl_admission(fits ? IFL_YES : IFL_NO_BLOCKS, ifl_n_slots(r) + n);
}

IFL_HOT static struct ifl_admission ask(const void *self, const struct ifl_view *view,
                                        struct ifl_step *step, const struct ifl_request *r,
                                        int32_t n)
{
    const struct prompt_fits *p = self;
    const int32_t n_blocks = view->limits->n_blocks;
    const int32_t watermark = (int32_t)(p->watermark_frac * n_blocks);
    if (IFL_RARE(r->state == IFL_SWAPPED))
        return ask_swapped(p, view, step, r, n, watermark);
    const int32_t need = blocks_asked(p, view, step, r);
    const int32_t later =
        IFL_RARE(p->paused_prompt_tokens > 0) ? ifl_need(step, r, ifl_n_tokens(r)) : need;
    if (n_blocks - ifl_max(need, later) < watermark)
        return ifl_admission(IFL_NEVER_FITS, 0);
    const bool fits = step->n_free_blocks - need >= watermark;
    return ifl_admission(fits ? IFL_YES : IFL_NO_BLOCKS, prompt_of(p, r));
}

static const struct ifl_admit_ops ops = {ask};

const struct ifl_policy policy_admit_prompt_fits = {
    .kind = IFL_ADMIT,
    .name = "prompt-fits",
    .doc = "the whole prompt must fit and leave a watermark free (vLLM v0, Sarathi-Serve)",
    .params = params,
    .n_params = sizeof params / sizeof *params,
    .params_bytes = sizeof(struct prompt_fits),
    .steady = ifl_always_steady,
    .ops.admit = &ops,
};
