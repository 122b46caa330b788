#include "replica/kv/identity.h"

#include "inflight/assert.h"
#include "inflight/minmax.h"
#include "inflight/random.h"

enum source { OF_RETRIES, OF_STREAM, OF_TRACE, OF_REQUEST };

static uint64_t chain(uint64_t before, enum source source, uint64_t of, uint64_t at)
{
    return ifl_mix(ifl_mix(before ^ ((uint64_t)source << 62)) ^ ifl_mix(of) ^ (at << 1 | 1));
}

/* A block may lie across several hash ids, or a hash id across several blocks. */
static uint64_t chain_ids(const struct ifl_request *r, uint64_t before, int64_t from, int64_t to)
{
    const int32_t id_tokens = r->hash_id_tokens;
    for (int64_t id = from / id_tokens; id * id_tokens < to; id++)
        before = chain(before, OF_TRACE, r->hash_ids[id], (uint64_t)(from % id_tokens));
    return before;
}

uint64_t kv_identity(const struct live_request *live, uint64_t before, int32_t block,
                     int32_t block_tokens)
{
    ifl_assert(block > 0 || before == 0);
    const struct ifl_request *r = &live->pub;
    const int64_t from = (int64_t)block * block_tokens, to = from + block_tokens;
    if (to <= live->stream_tokens)
        return chain(before, OF_STREAM, r->prefix_group, (uint64_t)block);
    if (to <= live->named_tokens)
        return chain_ids(r, before, from, to);
    if (r->repeats > 0 && to <= r->n_prompt)
        return chain(before, OF_RETRIES, r->repeats, (uint64_t)block);
    return chain(before, OF_REQUEST, r->serial, (uint64_t)block);
}

static int64_t id_covered_tokens(const struct ifl_request *r)
{
    const int64_t n = (int64_t)r->n_hash_ids * r->hash_id_tokens;
    return ifl_min(n, r->n_prompt);
}

int32_t kv_shareable_tokens(const struct live_request *r)
{
    const int32_t n_named = ifl_max(r->named_tokens, r->stream_tokens);
    return r->pub.repeats > 0 ? ifl_max(n_named, r->pub.n_prompt) : n_named;
}

static int32_t smaller(int64_t a, int64_t b)
{
    return (int32_t)ifl_min(a, b);
}

int32_t kv_common_tokens(const struct ifl_request *a, const struct ifl_request *b)
{
    int32_t n = 0;
    if (a->prefix_tokens || b->prefix_tokens)
        return a->prefix_group == b->prefix_group ? smaller(a->prefix_tokens, b->prefix_tokens) : 0;
    while (n < a->n_hash_ids && n < b->n_hash_ids && a->hash_ids[n] == b->hash_ids[n])
        n++;
    return smaller((int64_t)n * a->hash_id_tokens,
                   smaller(id_covered_tokens(a), id_covered_tokens(b)));
}
