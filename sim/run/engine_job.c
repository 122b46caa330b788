#include "run/engine_job.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "inflight/minmax.h"
#include "replica/live_request.h"
#include "run/logprobs.h"

/* ---- room ---- */

#define GROW(array, n_used) (array_grow(&(array), n_used, cap, sizeof *(array)) < 0)

static size_t enough(size_t cap, size_t n)
{
    return n <= cap ? cap : 2 * n + 16;
}

static int reserve_seqs(struct engine_job *job, size_t n)
{
    const size_t had = job->cap_seqs, cap = enough(had, n);
    if (cap == had)
        return 0;
    job->cap_seqs = 0;
    if (GROW(job->owners, had) || GROW(job->first_token, had) || GROW(job->first_block, had) ||
        GROW(job->n_rows, had) || GROW(job->n_drafts, had) || GROW(job->n_drawn, had) ||
        GROW(job->n_accepted, had) || GROW(job->adapters, had) || GROW(job->n_best, had))
        return IFL_E_NOMEM;
    job->cap_seqs = cap;
    return 0;
}

static int reserve_tokens(struct engine_job *job, size_t n)
{
    const size_t had = job->cap_tokens, cap = enough(had, n);
    if (cap == had)
        return 0;
    job->cap_tokens = 0;
    if (GROW(job->token_ids, had) || GROW(job->positions, had) || GROW(job->sampled, had))
        return IFL_E_NOMEM;
    job->cap_tokens = cap;
    return 0;
}

static int reserve_blocks(struct engine_job *job, size_t n)
{
    const size_t had = job->cap_blocks, cap = enough(had, n);
    if (cap != had && GROW(job->block_ids, had))
        return IFL_E_NOMEM;
    job->cap_blocks = cap;
    return 0;
}

static int reserve_copies(struct engine_job *job, size_t n)
{
    const size_t had = job->cap_copies, cap = enough(had, n);
    if (cap == had)
        return 0;
    job->cap_copies = 0;
    if (GROW(job->outs, had) || GROW(job->ins, had) || GROW(job->copies, had))
        return IFL_E_NOMEM;
    job->cap_copies = cap;
    return 0;
}

/* Logits take four bytes a token of the vocabulary and a sequence that is asked, or beside one. */
static int reserve_logits(struct engine_job *job)
{
    size_t n_rows = 0;
    for (int32_t seq = 0; seq < job->step.n_seqs; seq++)
        n_rows += (size_t)job->n_rows[seq];
    const size_t had = job->cap_logits, n = n_rows * (size_t)job->n_vocab;
    if (n > had && array_grow(&job->logits, 0, n, sizeof *job->logits) < 0)
        return IFL_E_NOMEM;
    job->cap_logits = ifl_max(had, n);
    if (job->cap_seqs > job->cap_logprobs &&
        array_grow(&job->logprobs, 0, job->cap_seqs, sizeof *job->logprobs) < 0)
        return IFL_E_NOMEM;
    job->cap_logprobs = ifl_max(job->cap_logprobs, job->cap_seqs);
    job->step.logits = job->logits;
    return 0;
}

static int reserve_spoilt(struct engine_job *job, size_t n)
{
    const size_t had = job->cap_spoilt, cap = enough(had, n);
    if (cap != had && GROW(job->spoilt, had))
        return IFL_E_NOMEM;
    job->cap_spoilt = cap;
    return 0;
}

int engine_job_reserve(struct engine_job *job, size_t n_seqs, size_t n_tokens, size_t n_blocks)
{
    return reserve_seqs(job, n_seqs + 1) < 0 || reserve_tokens(job, n_tokens) < 0 ||
                   reserve_blocks(job, n_blocks) < 0
               ? IFL_E_NOMEM
               : 0;
}

static size_t most_copies(const struct ifl_step_desc *desc)
{
    const size_t swapped = ifl_max(desc->n_outs, desc->n_ins);
    return ifl_max(swapped, desc->n_copies);
}

static int reserve(struct engine_job *job, const struct ifl_step_desc *desc)
{
    size_t n_blocks = 0, n_tokens = 0;
    for (size_t i = 0; i < desc->n_work; i++) {
        n_blocks += (size_t)desc->work[i].n_blocks;
        n_tokens += (size_t)desc->work[i].n_new;
    }
    if (engine_job_reserve(job, desc->n_work, n_tokens, n_blocks) < 0 ||
        reserve_copies(job, most_copies(desc)) < 0)
        return IFL_E_NOMEM;
    return 0;
}

void engine_job_finish(struct engine_job *job)
{
    void *const arrays[] = {job->owners,    job->token_ids, job->positions,  job->first_token,
                            job->block_ids, job->spoilt,    job->n_rows,     job->first_block,
                            job->sampled,   job->outs,      job->ins,        job->copies,
                            job->n_drafts,  job->n_drawn,   job->n_accepted, job->adapters,
                            job->n_best,    job->logprobs,  job->logits};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(arrays[i]);
    kept_job_finish(&job->kept);
    *job = (struct engine_job){0};
}

/* ---- blocks that no request owns ---- */

int engine_spoiler_create(struct engine_spoiler *spoiler, const struct kv_pool *pool)
{
    *spoiler = (struct engine_spoiler){pool, calloc((size_t)pool->n_blocks + 1, sizeof(bool))};
    return spoiler->spoilt ? 0 : IFL_E_NOMEM;
}

void engine_spoiler_finish(struct engine_spoiler *spoiler)
{
    free(spoiler->spoilt);
    *spoiler = (struct engine_spoiler){0};
}

static int list_spoilt(struct engine_job *job, struct engine_spoiler *spoiler)
{
    const struct kv_pool *pool = spoiler->pool;
    if (!pool)
        return 0;
    if (reserve_spoilt(job, (size_t)pool->n_blocks) < 0)
        return IFL_E_NOMEM;
    for (int32_t block = 0; block < pool->n_blocks; block++) {
        const bool is_free = !kv_is_live(pool, (uint32_t)block);
        if (is_free && !spoiler->spoilt[block])
            job->spoilt[job->step.n_spoilt++] = (uint32_t)block;
        spoiler->spoilt[block] = is_free;
    }
    return 0;
}

/* ---- writing ---- */

static void add_work(struct engine_job *job, const struct ifl_work *work,
                     const struct source *source)
{
    struct ifl_engine_step *step = &job->step;
    const struct ifl_request *r = work->request;
    const int32_t seq = step->n_seqs++, block = job->first_block[seq];
    const int32_t *prompt = source ? source->ops->prompt(source->self, live(r)->row) : NULL;
    job->owners[seq] = (struct token_owner){.serial = r->serial,
                                            .seq = work->seq,
                                            .n_seqs = r->n_seqs,
                                            .n_prompt = r->n_prompt,
                                            .repeats = work->repeats,
                                            .prompt = prompt,
                                            .prefix_group = r->prefix_group,
                                            .stream_tokens = work->stream_tokens,
                                            .hash_ids = r->hash_ids,
                                            .named_tokens = work->named_tokens,
                                            .hash_id_tokens = r->hash_id_tokens};
    job->n_rows[seq] = work->samples ? 1 + work->n_draft : 0;
    job->n_drafts[seq] = work->n_draft;
    job->n_best[seq] = work->samples && source && job->has_logits
                           ? source->ops->logprobs(source->self, live(r)->row)
                           : -1;
    job->is_asked |= job->n_best[seq] >= 0;
    job->n_drawn[seq] = work->n_holds;
    job->adapters[seq] = (int32_t)r->adapter;
    for (int32_t i = 0; i < work->n_new; i++)
        job->positions[step->n_tokens++] = work->n_context + i;
    memcpy(job->block_ids + block, work->blocks, (size_t)work->n_blocks * sizeof *work->blocks);
    job->first_token[seq + 1] = step->n_tokens;
    job->first_block[seq + 1] = block + work->n_blocks;
}

static void copy_all(struct ifl_copy *to, const struct ifl_copy *from, size_t n)
{
    if (n > 0)
        memcpy(to, from, n * sizeof *to);
}

void engine_job_point(struct engine_job *job)
{
    job->step.token_ids = job->token_ids;
    job->step.positions = job->positions;
    job->step.first_token = job->first_token;
    job->step.first_block = job->first_block;
    job->step.block_ids = job->block_ids;
    job->step.n_rows = job->n_rows;
    job->step.sampled = job->sampled;
}

int engine_job_write(struct engine_job *job, const struct ifl_step_desc *desc,
                     const struct source *source, struct engine_spoiler *spoiler)
{
    job->step = (struct ifl_engine_step){
        .n_outs = desc->n_outs, .n_ins = desc->n_ins, .n_copies = desc->n_copies};
    job->done = (struct ifl_done){.step = desc->step, .replica = desc->replica};
    job->code = 0;
    if (reserve(job, desc) < 0 || list_spoilt(job, spoiler) < 0)
        return IFL_E_NOMEM;
    job->first_token[0] = job->first_block[0] = 0;
    job->is_asked = false;
    for (size_t i = 0; i < desc->n_work; i++)
        add_work(job, &desc->work[i], source);
    if (job->is_asked && reserve_logits(job) < 0)
        return IFL_E_NOMEM;
    copy_all(job->outs, desc->outs, desc->n_outs);
    copy_all(job->ins, desc->ins, desc->n_ins);
    copy_all(job->copies, desc->copies, desc->n_copies);
    engine_job_point(job);
    job->step.adapters = desc->totals.adapters.n > 0 ? job->adapters : NULL;
    job->step.outs = job->outs;
    job->step.ins = job->ins;
    job->step.copies = job->copies;
    job->step.spoilt = job->spoilt;
    return 0;
}

/* ---- token ids ---- */

void engine_job_look_up(struct engine_job *job, const struct token_ids *ids)
{
    for (int32_t seq = 0; seq < job->step.n_seqs; seq++)
        for (int32_t i = job->first_token[seq]; i < job->first_token[seq + 1] - job->n_drafts[seq];
             i++)
            job->token_ids[i] = token_ids_get(ids, &job->owners[seq], job->positions[i]);
}

/* Guesses that hold: from the first on, as long as the engine says the same. */
static int32_t verify(const struct engine_job *job, int32_t seq, const int32_t *sampled)
{
    const int32_t n = job->n_drafts[seq];
    const int32_t *guessed = job->token_ids + job->first_token[seq + 1] - n;
    int32_t held = 0;
    while (held < n && guessed[held] == sampled[held])
        held++;
    return held;
}

static int remember(struct engine_job *job, struct token_ids *ids, int32_t seq,
                    const int32_t *sampled, bool verifies)
{
    const int32_t first = job->first_token[seq + 1] - job->n_drafts[seq];
    const int32_t n_held = verifies ? verify(job, seq, sampled) : job->n_drawn[seq];
    job->n_accepted[seq] = n_held;
    for (int32_t i = 0; i < n_held; i++)
        if (token_ids_put(ids, &job->owners[seq], job->positions[first + i],
                          job->token_ids[first + i]) < 0)
            return IFL_E_NOMEM;
    return token_ids_put(ids, &job->owners[seq], job->positions[first - 1] + 1 + n_held,
                         sampled[n_held]);
}

int engine_job_remember(struct engine_job *job, struct token_ids *ids, bool verifies)
{
    const int32_t *sampled = job->sampled;
    for (int32_t seq = 0; seq < job->step.n_seqs; sampled += job->n_rows[seq++])
        if (job->n_rows[seq] > 0 && remember(job, ids, seq, sampled, verifies) < 0)
            return IFL_E_NOMEM;
    return 0;
}

void engine_job_weigh(struct engine_job *job)
{
    const float *row = job->logits;
    const int32_t *sampled = job->sampled;
    for (int32_t seq = 0; seq < job->step.n_seqs; sampled += job->n_rows[seq++]) {
        if (job->n_best[seq] >= 0)
            logprobs_of(row, job->n_vocab, *sampled, job->n_best[seq], &job->logprobs[seq]);
        row += (size_t)job->n_rows[seq] * (size_t)job->n_vocab;
    }
}

/* New tokens of a sequence have slots in a row. */
static bool computes_into(const struct engine_job *job, int32_t seq, int32_t block_tokens,
                          const uint32_t *n_sends)
{
    const struct ifl_engine_step *step = &job->step;
    const int32_t *slots = step->slots ? step->slots : step->positions;
    const uint32_t *table = step->block_ids + step->first_block[seq];
    const int32_t first = slots[step->first_token[seq]] / block_tokens,
                  last = slots[step->first_token[seq + 1] - 1] / block_tokens;
    for (int32_t i = first; i <= last; i++)
        if (n_sends[table[i]] > 0)
            return true;
    return false;
}

bool engine_job_writes(const struct engine_job *job, int32_t block_tokens, const uint32_t *n_sends)
{
    const struct ifl_engine_step *step = &job->step;
    bool writes = false;
    for (int32_t seq = 0; seq < step->n_seqs && !writes; seq++)
        writes = computes_into(job, seq, block_tokens, n_sends);
    for (size_t i = 0; i < step->n_ins && !writes; i++)
        writes = n_sends[step->ins[i].to] > 0;
    for (size_t i = 0; i < step->n_copies && !writes; i++)
        writes = n_sends[step->copies[i].to] > 0;
    for (size_t i = 0; i < step->n_spoilt && !writes; i++)
        writes = n_sends[step->spoilt[i]] > 0;
    return writes;
}

bool engine_job_feeds(const struct engine_job *earlier, const struct engine_job *later)
{
    for (int32_t a = 0; a < earlier->step.n_seqs; a++) {
        if (earlier->n_rows[a] == 0)
            continue;
        for (int32_t b = 0; b < later->step.n_seqs; b++)
            if (earlier->owners[a].serial == later->owners[b].serial &&
                earlier->owners[a].seq == later->owners[b].seq)
                return true;
    }
    return false;
}
