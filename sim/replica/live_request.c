#include "replica/live_request.h"

#include <stdlib.h>
#include <string.h>

#include "inflight/error.h"

/* FIRST_AT: of the first record in its chunk. A record that starts there, or a multiple of LINE
 * behind it, has the pointer to its parts and LIVE_NEAR_PARTS in one cache line. */
enum {
    LINE = 64,
    FIRST_AT = 48,
    PARTS_AT = (sizeof(struct live_request) + LIVE_ALIGNMENT - 1) & -LIVE_ALIGNMENT
};
_Static_assert((FIRST_AT + offsetof(struct ifl_request, parts)) / LINE ==
                   (FIRST_AT + offsetof(struct live_request, parts) + LIVE_NEAR_PARTS - 1) / LINE,
               "one line has the pointer and what it points to");

const struct live_rare live_no_rare = {.resumed_ns = IFL_NEVER};

void live_pool_init(struct live_pool *pool, size_t parts_bytes)
{
    const bool near = parts_bytes > 0 && parts_bytes <= LIVE_NEAR_PARTS;
    const size_t unit = near ? LINE : LIVE_ALIGNMENT;
    const size_t n_bytes = (size_t)PARTS_AT + (near ? 0 : parts_bytes) + unit - 1;
    *pool = (struct live_pool){
        .record_bytes = n_bytes / unit * unit,
        .parts_at = near ? offsetof(struct live_request, parts) : PARTS_AT,
        .parts_bytes = near ? 0 : n_bytes / unit * unit - PARTS_AT,
    };
}

static struct live_request *record_at(const struct live_pool *pool, size_t i)
{
    char *chunk = pool->chunks[i / LIVE_CHUNK];
    return (struct live_request *)(void *)(chunk + FIRST_AT + i % LIVE_CHUNK * pool->record_bytes);
}

void live_pool_finish(struct live_pool *pool)
{
    for (size_t i = 0; i < pool->n_used; i++) {
        struct live_request *r = record_at(pool, i);
        free(r->blocks);
        free(r->own.beams.at);
    }
    for (size_t c = 0; c < pool->n_chunks; c++)
        free(pool->chunks[c]);
    free(pool->chunks);
    *pool = (struct live_pool){0};
}

static int add_chunk(struct live_pool *pool)
{
    if (pool->n_chunks == pool->cap_chunks) {
        const size_t cap = pool->cap_chunks ? 2 * pool->cap_chunks : 16;
        void **chunks = realloc(pool->chunks, cap * sizeof *chunks);
        if (!chunks)
            return IFL_E_NOMEM;
        pool->chunks = chunks;
        pool->cap_chunks = cap;
    }
    void *chunk = aligned_alloc(LINE, LINE + LIVE_CHUNK * pool->record_bytes);
    if (!chunk)
        return IFL_E_NOMEM;
    pool->chunks[pool->n_chunks++] = chunk;
    return 0;
}

IFL_APART int live_add_chunks(struct live_pool *pool, size_t n)
{
    while (pool->n_chunks * LIVE_CHUNK < n)
        if (add_chunk(pool) < 0)
            return IFL_E_NOMEM;
    return 0;
}

/* The record that was given back last, because it may still be in the caches; or a new one, without
 * arrays. */
static struct live_request *any_free(struct live_pool *pool)
{
    struct live_request *r = pool->free;
    if (r) {
        pool->free = r->links[ON_DEVICE].next;
        return r;
    }
    r = record_at(pool, pool->n_used++);
    r->blocks = NULL;
    r->cap_blocks = 0;
    r->own.beams = (struct kv_beams){0};
    return r;
}

IFL_HOT struct live_request *live_take(struct live_pool *pool)
{
    ifl_require(pool->free || pool->n_used < pool->n_chunks * LIVE_CHUNK);
    struct live_request *r = any_free(pool);
    uint32_t *blocks = r->blocks;
    const int32_t cap_blocks = r->cap_blocks;
    memset(r, 0, offsetof(struct live_request, own));
    if (pool->parts_bytes > 0)
        memset((char *)r + PARTS_AT, 0, pool->parts_bytes);
    r->blocks = blocks;
    r->cap_blocks = cap_blocks;
    r->pub.parts = (char *)r + pool->parts_at;
    r->pub.seal = live_seal(pool, &r->pub);
    pool->n_live++;
    return r;
}

void live_go_on(struct live_request *r, const struct live_request *from)
{
    r->first_scheduled_ns = from->first_scheduled_ns;
    r->pub.first_token_ns = from->pub.first_token_ns;
    r->pub.stale.last_end_ns = from->pub.stale.last_end_ns;
    r->last_token_ns = from->last_token_ns;
    r->max_itl_ns = from->max_itl_ns;
    r->stalled_ns = from->stalled_ns;
    r->stalled_prefill_ns = from->stalled_prefill_ns;
    r->cached_tokens = from->cached_tokens;
    r->n_steps = from->n_steps;
    r->note = from->note;
    if (from->rare == &live_no_rare)
        return;
    struct live_tiers *tiers = &live_own(r)->tiers;
    memcpy(tiers->found_tokens, from->rare->tiers.found_tokens, sizeof tiers->found_tokens);
    tiers->load_ns = from->rare->tiers.load_ns;
    tiers->exposed_ns = from->rare->tiers.exposed_ns;
}

void live_leave_for(const struct live_request *r, struct arrival *a)
{
    const struct ifl_request *pub = &r->pub;
    *a = (struct arrival){
        .row = r->row,
        .attempt = r->attempt,
        .serial = pub->serial,
        .sent_ns = r->sent_ns,
        .at_ns = pub->arrival_ns,
        .n_prompt = pub->n_prompt,
        .n_output = r->n_output,
        .n_predicted = pub->n_predicted,
        .cut = r->cut,
        .stream_tokens = r->stream_tokens,
        .named_tokens = r->named_tokens,
        .repeats = pub->repeats,
        .said = {.client = pub->client,
                 .priority = pub->priority,
                 .ttft_slo_ns = pub->ttft_slo_ns,
                 .tpot_slo_ns = pub->tpot_slo_ns,
                 .max_tokens = pub->n_max_new,
                 .samples = pub->n_seqs,
                 .adapter = pub->adapter,
                 .session = pub->session,
                 .accept_percent = r->accept_percent,
                 .prefix_group = pub->prefix_group,
                 .prefix_tokens = (int32_t)pub->prefix_tokens},
        .hash_ids = pub->hash_ids,
        .n_hash_ids = pub->n_hash_ids,
        .hash_id_tokens = pub->hash_id_tokens,
        .note = r->note,
        .goes_on = r,
    };
}

/* Of a request with two replicas. */
static void describe_part(struct live_request *r, const struct arrival *a)
{
    r->handover = a->handover;
    r->hands_over = a->hands_over;
    r->answers_on_arrival = a->answers_on_arrival;
    r->answered_elsewhere = a->answered_elsewhere;
    r->n_below = a->n_below;
    if (a->hands_over)
        r->pub.n_max_new = 1; /* all that its server is asked for */
    if (a->goes_on) {
        live_go_on(r, a->goes_on);
        r->pub.stale.n_out = a->goes_on->pub.stale.n_out;
        r->pub.stale.n_tokens += r->pub.stale.n_out;
    }
    if (a->n_below > 0)
        r->pub.stale.n_computed = r->pub.stale.n_tokens - 1; /* once that has come */
}

IFL_HOT void live_describe(struct live_request *r, const struct arrival *a)
{
    ifl_assert(r->pub.n_prompt == 0 && r->pub.serial == 0 && r->pub.stale.n_tokens == 0);
    struct ifl_request *pub = &r->pub;
    r->rare = &live_no_rare;
    r->row = a->row;
    r->attempt = a->attempt;
    r->n_output = a->n_output;
    r->cut = a->cut;
    r->stream_tokens = a->stream_tokens;
    r->named_tokens = a->named_tokens;
    pub->repeats = a->repeats;
    r->sent_ns = a->sent_ns;
    r->note = a->note;
    r->first_scheduled_ns = r->pub.first_token_ns = IFL_NEVER;
    r->stalled_since_ns = r->stall_ended_ns = IFL_NEVER;
    r->max_itl_ns = -1;
    r->accept_percent = a->said.accept_percent;
    pub->serial = pub->queued_serial = a->serial;
    pub->arrival_ns = pub->queued_ns = r->joined_ns = a->at_ns;
    pub->started_ns = pub->stale.last_end_ns = IFL_NEVER;
    pub->ttft_slo_ns = a->said.ttft_slo_ns;
    pub->tpot_slo_ns = a->said.tpot_slo_ns;
    pub->n_prompt = pub->stale.n_tokens = a->n_prompt;
    pub->n_max_new = a->said.max_tokens;
    pub->n_predicted = a->n_predicted;
    pub->n_seqs = a->said.samples;
    pub->priority = a->said.priority;
    pub->client = a->said.client;
    pub->session = a->said.session;
    pub->adapter = a->said.adapter;
    pub->prefix_group = a->said.prefix_group;
    pub->prefix_tokens = (uint32_t)a->said.prefix_tokens;
    pub->hash_ids = a->hash_ids;
    pub->n_hash_ids = a->n_hash_ids;
    pub->hash_id_tokens = a->hash_id_tokens;
    pub->is_reserved = !a->hands_over;
    if (IFL_RARE(a->handover > 0 || a->goes_on))
        describe_part(r, a);
}

IFL_APART int live_grow_blocks(struct live_request *r, int32_t n)
{
    int32_t cap = r->cap_blocks ? r->cap_blocks : 32;
    while (cap < n)
        cap *= 2;
    uint32_t *blocks = realloc(r->blocks, (size_t)cap * sizeof *blocks);
    if (!blocks)
        return IFL_E_NOMEM;
    r->blocks = blocks;
    r->cap_blocks = cap;
    return 0;
}
