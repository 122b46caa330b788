#include "run/proposer.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "inflight/minmax.h"

int proposer_open(struct proposer *proposer, const struct proposer_options *options,
                  struct ifl_error *error)
{
    *proposer = (struct proposer){.longest_match = options->longest_match,
                                  .shortest_match = options->shortest_match};
    if (!options->engine)
        return 0;
    proposer->n_computed = calloc(options->n_requests + 1, sizeof *proposer->n_computed);
    if (!proposer->n_computed)
        return ifl_fail_nomem(error);
    const int rc = options->engine->open(&options->open, &proposer->self, error);
    proposer->engine = rc == 0 ? options->engine : NULL;
    return rc;
}

void proposer_close(struct proposer *proposer)
{
    if (proposer->engine)
        proposer->engine->close(proposer->self);
    engine_job_finish(&proposer->pass);
    free(proposer->n_computed);
    free(proposer->seq_of);
    free(proposer->text);
    *proposer = (struct proposer){0};
}

/* Where the guesses of the sequence begin among the job's tokens. */
static int32_t first_guess(const struct engine_job *job, int32_t seq)
{
    return job->first_token[seq + 1] - job->n_drafts[seq];
}

/* ---- a look-up ---- */

/* The earliest place behind an occurrence of the last n tokens, for the longest n (vLLM,
 * v1/spec_decode/ngram_proposer.py); -1: none. */
static int32_t find_match(const struct proposer *proposer, const int32_t *text, int32_t n_text)
{
    const int32_t longest = ifl_min(proposer->longest_match, n_text - 1);
    for (int32_t n = longest; n >= proposer->shortest_match; n--)
        for (int32_t at = 0; at + n < n_text; at++)
            if (memcmp(text + at, text + n_text - n, (size_t)n * sizeof *text) == 0)
                return at + n;
    return -1;
}

/* The text, up to the last known token, and room for n_draft more behind it. */
static int32_t *read_text(struct proposer *proposer, const struct engine_job *job, int32_t seq,
                          const struct token_ids *ids, int32_t *n_text)
{
    const int32_t n = job->positions[first_guess(job, seq)];
    const size_t cap = (size_t)n + (size_t)job->n_drafts[seq];
    if (cap > proposer->cap_text) {
        if (array_grow(&proposer->text, 0, 2 * cap, sizeof *proposer->text) < 0)
            return NULL;
        proposer->cap_text = 2 * cap;
    }
    for (int32_t i = 0; i < n; i++)
        proposer->text[i] = token_ids_get(ids, &job->owners[seq], i);
    *n_text = n;
    return proposer->text;
}

/* A match may run into the guesses themselves: a period goes on. */
static int look_up(struct proposer *proposer, struct engine_job *job, int32_t seq,
                   const struct token_ids *ids)
{
    int32_t n_text = 0, *text = read_text(proposer, job, seq, ids, &n_text);
    if (!text)
        return IFL_E_NOMEM;
    const int32_t at = find_match(proposer, text, n_text), guess = first_guess(job, seq);
    for (int32_t i = 0; i < job->n_drafts[seq]; i++) {
        text[n_text + i] = at < 0 ? text[n_text - 1] : text[at + i];
        job->token_ids[guess + i] = text[n_text + i];
    }
    return 0;
}

/* ---- a draft model ---- */

static int reserve(struct proposer *proposer, const struct engine_job *job)
{
    const size_t n = (size_t)job->step.n_seqs;
    if (engine_job_reserve(&proposer->pass, n, (size_t)job->step.n_tokens + n,
                           (size_t)job->first_block[job->step.n_seqs]) < 0)
        return IFL_E_NOMEM;
    if (n <= proposer->cap_seqs)
        return 0;
    if (array_grow(&proposer->seq_of, 0, 2 * n, sizeof *proposer->seq_of) < 0)
        return IFL_E_NOMEM;
    proposer->cap_seqs = 2 * n;
    return 0;
}

static void begin_pass(struct engine_job *pass)
{
    pass->step = (struct ifl_engine_step){0};
    pass->first_token[0] = pass->first_block[0] = 0;
}

/* Adds n tokens of a sequence, from `position` on; the caller has written their ids. */
static void add_to_pass(struct proposer *proposer, const struct engine_job *job, int32_t seq,
                        int32_t position, int32_t n, bool samples)
{
    struct engine_job *pass = &proposer->pass;
    const int32_t i = pass->step.n_seqs++,
                  n_blocks = job->first_block[seq + 1] - job->first_block[seq];
    proposer->seq_of[i] = seq;
    for (int32_t k = 0; k < n; k++)
        pass->positions[pass->step.n_tokens++] = position + k;
    memcpy(pass->block_ids + pass->first_block[i], job->block_ids + job->first_block[seq],
           (size_t)n_blocks * sizeof *pass->block_ids);
    pass->n_rows[i] = samples;
    pass->first_token[i + 1] = pass->step.n_tokens;
    pass->first_block[i + 1] = pass->first_block[i] + n_blocks;
}

/* All sequences: what the draft model lacks of them. Blocks that were found in a cache have its
 * K/V, too; behind a step in which all guesses held one token is missing. */
static void first_pass(struct proposer *proposer, const struct engine_job *job,
                       const struct token_ids *ids)
{
    struct engine_job *pass = &proposer->pass;
    for (int32_t seq = 0; seq < job->step.n_seqs; seq++) {
        const struct token_owner *owner = &job->owners[seq];
        int32_t *n_computed = &proposer->n_computed[owner->serial];
        const int32_t begin = job->positions[job->first_token[seq]];
        const int32_t end = job->positions[first_guess(job, seq) - 1] + 1;
        const int32_t from = *n_computed == begin - 1 ? *n_computed : begin;
        for (int32_t i = from; i < end; i++)
            pass->token_ids[pass->step.n_tokens + i - from] = token_ids_get(ids, owner, i);
        add_to_pass(proposer, job, seq, from, end - from, job->n_drafts[seq] > 0);
        *n_computed = end;
    }
}

/* Sequences of which more than n are guessed: the n-th guess is fed. */
static void next_pass(struct proposer *proposer, const struct engine_job *job, int32_t n)
{
    struct engine_job *pass = &proposer->pass;
    for (int32_t seq = 0; seq < job->step.n_seqs; seq++) {
        if (job->n_drafts[seq] <= n)
            continue;
        const int32_t at = first_guess(job, seq) + n - 1;
        pass->token_ids[pass->step.n_tokens] = job->token_ids[at];
        add_to_pass(proposer, job, seq, job->positions[at], 1, true);
        proposer->n_computed[job->owners[seq].serial] = job->positions[at] + 1;
    }
}

/* Runs the pass and takes its guesses, the n-th of each sequence. */
static int run_pass(struct proposer *proposer, struct engine_job *job, int32_t n,
                    struct ifl_error *error)
{
    struct engine_job *pass = &proposer->pass;
    const int32_t *sampled = pass->sampled;
    engine_job_point(pass);
    const int rc = proposer->engine->step(proposer->self, &pass->step, error);
    for (int32_t i = 0; rc == 0 && i < pass->step.n_seqs; i++)
        if (pass->n_rows[i])
            job->token_ids[first_guess(job, proposer->seq_of[i]) + n] = *sampled++;
    return rc;
}

static int guess_by_model(struct proposer *proposer, struct engine_job *job,
                          const struct token_ids *ids, struct ifl_error *error)
{
    struct ifl_engine_step *step = &proposer->pass.step;
    int32_t most = 0;
    if (reserve(proposer, job) < 0)
        return ifl_fail_nomem(error);
    for (int32_t seq = 0; seq < job->step.n_seqs; seq++)
        most = ifl_max(most, job->n_drafts[seq]);
    begin_pass(&proposer->pass);
    first_pass(proposer, job, ids);
    step->n_outs = job->step.n_outs;
    step->n_ins = job->step.n_ins;
    step->n_copies = job->step.n_copies;
    step->outs = job->step.outs;
    step->ins = job->step.ins;
    step->copies = job->step.copies;
    int rc = run_pass(proposer, job, 0, error);
    for (int32_t n = 1; n < most && rc == 0; n++) {
        begin_pass(&proposer->pass);
        next_pass(proposer, job, n);
        rc = run_pass(proposer, job, n, error);
    }
    return rc;
}

/* What the trace names of an answer is what is fed, whatever was guessed. */
static void keep_to_the_trace(struct engine_job *job, const struct token_ids *ids)
{
    for (int32_t seq = 0; seq < job->step.n_seqs; seq++)
        for (int32_t i = first_guess(job, seq); i < job->first_token[seq + 1]; i++)
            if (token_ids_are_told(&job->owners[seq], job->positions[i]))
                job->token_ids[i] = token_ids_get(ids, &job->owners[seq], job->positions[i]);
}

int proposer_guess(struct proposer *proposer, struct engine_job *job, const struct token_ids *ids,
                   struct ifl_error *error)
{
    int rc = proposer->engine ? guess_by_model(proposer, job, ids, error) : 0;
    for (int32_t seq = 0; !proposer->engine && rc == 0 && seq < job->step.n_seqs; seq++)
        if (job->n_drafts[seq] > 0 && look_up(proposer, job, seq, ids) < 0)
            rc = ifl_fail_nomem(error);
    keep_to_the_trace(job, ids);
    return rc;
}
