#include "run/engine_keep.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "inflight/minmax.h"

struct score {
    float of;
    int32_t slot;
};

void engine_keep_create(struct engine_keep *k, const struct keep *keep,
                        const struct ifl_engine_model *model, int32_t block_tokens)
{
    *k = (struct engine_keep){.keep = *keep};
    if (keep->method == KEEP_ALL)
        return;
    k->block = kv_block_of(block_tokens);
    k->n_heads = model->n_layers * model->n_kv_heads;
}

static void free_seq(struct kept_seq *seq)
{
    if (!seq)
        return;
    free(seq->scores);
    free(seq->positions);
    free(seq->kept);
    free(seq);
}

void engine_keep_destroy(struct engine_keep *k)
{
    for (size_t i = 0; i < k->cap; i++)
        free_seq(k->of[i]);
    free(k->of);
    *k = (struct engine_keep){0};
}

void engine_keep_forget(struct engine_keep *k, uint64_t serial)
{
    if (serial >= k->cap)
        return;
    free_seq(k->of[serial]);
    k->of[serial] = NULL;
}

void kept_job_finish(struct kept_job *job)
{
    void *const arrays[] = {job->slots, job->n_slots, job->n_voters, job->ends_prompt,
                            job->seqs,  job->keeps,   job->votes,    job->ranked};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        free(arrays[i]);
    *job = (struct kept_job){0};
}

/* ---- before the step ---- */

/* Room for n slots of each head; rows of heads move apart. */
static int widen(struct kept_seq *seq, int32_t n_heads, int32_t n)
{
    if (n <= seq->cap)
        return 0;
    const int32_t cap = 2 * n;
    const size_t n_all = (size_t)n_heads * (size_t)cap;
    float *scores = calloc(n_all, sizeof *scores);
    int32_t *positions = calloc(n_all, sizeof *positions);
    int32_t *kept = realloc(seq->kept, n_all * sizeof *kept);
    seq->kept = kept ? kept : seq->kept;
    if (!scores || !positions || !kept) {
        free(scores);
        free(positions);
        return IFL_E_NOMEM;
    }
    for (int32_t head = 0; head < n_heads && seq->n_slots > 0; head++) {
        const size_t to = (size_t)head * (size_t)cap, from = (size_t)head * (size_t)seq->cap;
        memcpy(scores + to, seq->scores + from, (size_t)seq->n_slots * sizeof *scores);
        memcpy(positions + to, seq->positions + from, (size_t)seq->n_slots * sizeof *positions);
    }
    free(seq->scores);
    free(seq->positions);
    seq->scores = scores;
    seq->positions = positions;
    seq->cap = cap;
    return 0;
}

/* What is known of the request, with room for n slots; NULL without memory. */
static struct kept_seq *seq_of(struct engine_keep *k, uint64_t serial, int32_t n)
{
    if (serial >= k->cap) {
        const size_t had = k->cap, cap = 2 * (size_t)serial + 16;
        if (array_grow(&k->of, had, cap, sizeof(struct kept_seq *)) < 0)
            return NULL;
        memset(k->of + had, 0, (cap - had) * sizeof(struct kept_seq *));
        k->cap = cap;
    }
    if (!k->of[serial])
        k->of[serial] = calloc(1, sizeof *k->of[serial]);
    struct kept_seq *seq = k->of[serial];
    return seq && widen(seq, k->n_heads, n) == 0 ? seq : NULL;
}

/* New tokens of the sequence that vote, its last ones. */
static int32_t voters(const struct keep *keep, const struct ifl_work *work)
{
    const int32_t n_prefill = work->request->n_prefill, end = work->n_context + work->n_new;
    const bool decodes = work->n_context >= n_prefill;
    if (keep->method == KEEP_H2O)
        return work->n_new;
    if (keep->method == KEEP_STREAMING || decodes || n_prefill <= keep->budget_tokens)
        return 0;
    const int32_t from = ifl_max(work->n_context, n_prefill - keep->window_tokens);
    return ifl_max(end - from, 0);
}

static int reserve(struct kept_job *job, const struct ifl_engine_step *step)
{
    const size_t n_seqs = (size_t)step->n_seqs + 1, n_tokens = (size_t)step->n_tokens + 1;
    if (n_seqs > job->cap_seqs) {
        const size_t had = job->cap_seqs, cap = 2 * n_seqs;
        job->cap_seqs = 0;
        if (array_grow(&job->n_slots, had, cap, sizeof *job->n_slots) < 0 ||
            array_grow(&job->n_voters, had, cap, sizeof *job->n_voters) < 0 ||
            array_grow(&job->ends_prompt, had, cap, sizeof *job->ends_prompt) < 0 ||
            array_grow(&job->seqs, had, cap, sizeof(struct kept_seq *)) < 0 ||
            array_grow(&job->keeps, had, cap, sizeof *job->keeps) < 0)
            return IFL_E_NOMEM;
        job->cap_seqs = cap;
    }
    if (n_tokens <= job->cap_tokens)
        return 0;
    if (array_grow(&job->slots, job->cap_tokens, 2 * n_tokens, sizeof *job->slots) < 0)
        return IFL_E_NOMEM;
    job->cap_tokens = 2 * n_tokens;
    return 0;
}

static int reserve_votes(struct kept_job *job, size_t n_votes, size_t n_slots)
{
    if (n_votes > job->cap_votes) {
        if (array_grow(&job->votes, 0, 2 * n_votes, sizeof *job->votes) < 0)
            return IFL_E_NOMEM;
        job->cap_votes = 2 * n_votes;
    }
    if (n_slots > job->cap_ranked) {
        if (array_grow(&job->ranked, 0, 2 * n_slots, sizeof *job->ranked) < 0)
            return IFL_E_NOMEM;
        job->cap_ranked = 2 * n_slots;
    }
    return 0;
}

int engine_keep_write(struct engine_keep *k, struct kept_job *job, const struct ifl_step_desc *desc,
                      struct ifl_engine_step *step)
{
    size_t n_votes = 0, longest = 0;
    if (k->keep.method == KEEP_ALL)
        return 0;
    if (reserve(job, step) < 0)
        return IFL_E_NOMEM;
    for (int32_t i = 0, token = 0; i < step->n_seqs; i++) {
        const struct ifl_work *work = &desc->work[i];
        const int32_t first = work->n_context - work->request->stale.n_dropped;
        const int32_t n_slots = first + work->n_new;
        job->n_slots[i] = n_slots;
        job->n_voters[i] = voters(&k->keep, work);
        job->ends_prompt[i] = work->samples && work->n_context < work->request->n_prefill;
        job->seqs[i] = seq_of(k, work->request->serial, n_slots);
        if (!job->seqs[i])
            return IFL_E_NOMEM;
        job->seqs[i]->decodes = work->n_context >= work->request->n_prefill;
        for (int32_t n = 0; n < work->n_new; n++)
            job->slots[token++] = first + n;
        n_votes += job->n_voters[i] > 0 ? (size_t)k->n_heads * (size_t)n_slots : 0;
        longest = ifl_max(longest, (size_t)n_slots);
    }
    if (reserve_votes(job, n_votes, longest) < 0)
        return IFL_E_NOMEM;
    step->slots = job->slots;
    step->n_slots = job->n_slots;
    step->n_voters = job->n_voters;
    step->votes = job->votes;
    return 0;
}

/* ---- after the step ---- */

static int higher_first(const void *a, const void *b)
{
    const struct score *x = a, *y = b;
    if (x->of != y->of)
        return x->of > y->of ? -1 : 1;
    return (x->slot > y->slot) - (x->slot < y->slot);
}

static int earlier_first(const void *a, const void *b)
{
    const struct score *x = a, *y = b;
    return (x->slot > y->slot) - (x->slot < y->slot);
}

/* Of n scores, the i-th and its neighbours. */
static float pooled(const struct keep *keep, const float *scores, int32_t n, int32_t i)
{
    const int32_t half = keep->kernel_tokens / 2;
    float sum = 0, most = -INFINITY;
    if (keep->method == KEEP_H2O)
        return scores[i];
    for (int32_t at = ifl_max(i - half, 0); at <= ifl_min(i + half, n - 1); at++) {
        sum += scores[at];
        most = fmaxf(most, scores[at]);
    }
    return keep->pooling == KEEP_POOL_MAX ? most : sum / (float)keep->kernel_tokens;
}

/* Of n slots in order of position the budget that stays: kept[budget], rising. */
static void choose_of_prompt(const struct keep *keep, const float *scores, int32_t n,
                             struct score *ranked, int32_t *kept)
{
    const int32_t budget = keep->budget_tokens;
    const bool streams = keep->method == KEEP_STREAMING;
    const int32_t n_last = streams ? budget - keep->sink_tokens : keep->window_tokens;
    const int32_t n_first = budget - n_last, n_others = n - n_last;
    for (int32_t i = 0; i < n_others; i++)
        ranked[i] = (struct score){streams ? 0 : pooled(keep, scores, n_others, i), i};
    qsort(ranked, (size_t)n_others, sizeof *ranked, higher_first);
    qsort(ranked, (size_t)n_first, sizeof *ranked, earlier_first);
    for (int32_t i = 0; i < budget; i++)
        kept[i] = i < n_first ? ranked[i].slot : n - budget + i;
}

/* Of n slots the one that is given up: not of the last tokens, nor of the first ones. */
static int32_t choose_victim(const struct keep *keep, const float *scores, const int32_t *positions,
                             int32_t n, int32_t last_position)
{
    const bool streams = keep->method == KEEP_STREAMING;
    int32_t victim = -1;
    for (int32_t i = 0; i < n; i++) {
        if (streams ? positions[i] < keep->sink_tokens
                    : positions[i] > last_position - keep->window_tokens)
            continue;
        const bool before = victim >= 0 && positions[i] < positions[victim];
        const bool lighter = victim >= 0 && scores[i] < scores[victim];
        if (victim < 0 || (streams ? before : lighter || (scores[i] == scores[victim] && !before)))
            victim = i;
    }
    return victim;
}

/* The last slot's token takes the victim's. */
static void replace(const struct keep *keep, const float *scores, const int32_t *positions,
                    int32_t n, int32_t *kept)
{
    const int32_t victim = choose_victim(keep, scores, positions, n, positions[n - 1]);
    for (int32_t i = 0; i < n - 1; i++)
        kept[i] = i == victim ? n - 1 : i;
}

static void gather(struct kept_seq *seq, int32_t head, const int32_t *kept, int32_t n_kept)
{
    float *scores = seq->scores + (size_t)head * (size_t)seq->cap;
    int32_t *positions = seq->positions + (size_t)head * (size_t)seq->cap;
    for (int32_t i = 0; i < n_kept; i++) { /* kept[i] is at least i */
        scores[i] = scores[kept[i]];
        positions[i] = positions[kept[i]];
    }
}

/* The new tokens have slots, and all slots their votes. */
static void count(const struct engine_keep *k, const struct kept_job *job,
                  const struct ifl_engine_step *step, int32_t i, const float *votes)
{
    struct kept_seq *seq = job->seqs[i];
    const int32_t n_slots = job->n_slots[i], end = step->first_token[i + 1];
    const int32_t first = n_slots - (end - step->first_token[i]);
    for (int32_t head = 0; head < k->n_heads; head++) {
        const size_t row = (size_t)head * (size_t)seq->cap;
        for (int32_t slot = first; slot < n_slots; slot++) {
            seq->scores[row + (size_t)slot] = 0;
            seq->positions[row + (size_t)slot] = step->positions[end - n_slots + slot];
        }
        for (int32_t slot = 0; job->n_voters[i] > 0 && slot < n_slots; slot++)
            seq->scores[row + (size_t)slot] += votes[head * n_slots + slot];
    }
    seq->n_slots = n_slots;
}

/* Slots that the sequence keeps, or all that it has. */
static int32_t n_kept(const struct engine_keep *k, const struct kept_job *job, int32_t i)
{
    const int32_t n = job->n_slots[i];
    if (job->ends_prompt[i])
        return keep_of_prompt(&k->keep, n, k->block).n_slots;
    const bool is_full = keep_each_step(&k->keep) && n == k->keep.budget_tokens + 1;
    return is_full && job->seqs[i]->decodes ? n - 1 : n;
}

static void choose(const struct engine_keep *k, struct kept_job *job, int32_t i, int32_t n_stay)
{
    struct kept_seq *seq = job->seqs[i];
    const int32_t n = job->n_slots[i];
    for (int32_t head = 0; head < k->n_heads; head++) {
        int32_t *kept = seq->kept + (size_t)head * (size_t)n_stay;
        const size_t row = (size_t)head * (size_t)seq->cap;
        if (job->ends_prompt[i])
            choose_of_prompt(&k->keep, seq->scores + row, n, job->ranked, kept);
        else
            replace(&k->keep, seq->scores + row, seq->positions + row, n, kept);
        gather(seq, head, kept, n_stay);
    }
    seq->n_slots = n_stay;
}

size_t engine_keep_choose(const struct engine_keep *k, struct kept_job *job,
                          const struct ifl_engine_step *step)
{
    const float *votes = job->votes;
    size_t n = 0;
    for (int32_t i = 0; k->keep.method != KEEP_ALL && i < step->n_seqs; i++) {
        count(k, job, step, i, votes);
        votes += job->n_voters[i] > 0 ? (size_t)k->n_heads * (size_t)job->n_slots[i] : 0;
        const int32_t n_stay = n_kept(k, job, i);
        if (n_stay < job->n_slots[i]) {
            choose(k, job, i, n_stay);
            job->keeps[n++] = (struct ifl_engine_keep){
                .block_ids = step->block_ids + step->first_block[i],
                .n_blocks = step->first_block[i + 1] - step->first_block[i],
                .n_kept = n_stay,
                .kept = job->seqs[i]->kept,
            };
        }
    }
    return n;
}
