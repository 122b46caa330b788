#include "step_check.h"

#include "adapters.h"
#include "architecture.h"
#include "step_slots.h"

/* ---- what an engine is opened for ---- */

static int stages_check(const struct ifl_engine_options *o, struct ifl_error *error)
{
    int64_t n_layers = 0;
    if (o->n_stages == 0)
        return 0;
    if (o->n_stages < 0 || o->max_in_flight < 1)
        return ifl_fail(error, IFL_E_INPUT,
                        "%d stages with %d steps in flight, expected none or a step at least",
                        o->n_stages, o->max_in_flight);
    for (int32_t s = 0; s < o->n_stages; s++) {
        if (o->stage_layers[s] < 1)
            return ifl_fail(error, IFL_E_INPUT, "stage %d has %d layers, expected at least 1", s,
                            o->stage_layers[s]);
        n_layers += o->stage_layers[s];
    }
    return n_layers == o->model.n_layers
               ? 0
               : ifl_fail(error, IFL_E_INPUT,
                          "the stages have %lld layers, expected the model's %d",
                          (long long)n_layers, o->model.n_layers);
}

int limits_check(const struct ifl_engine_options *o, struct ifl_error *error)
{
    const struct {
        const char *name;
        int32_t is;
    } counts[] = {{"n_threads", o->n_threads},
                  {"block_tokens", o->block_tokens},
                  {"n_blocks", o->n_blocks},
                  {"max_tokens", o->max_tokens},
                  {"max_step_tokens", o->max_step_tokens},
                  {"max_step_seqs", o->max_step_seqs}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i].is < 1)
            return ifl_fail(error, IFL_E_INPUT, "%s is %d, expected at least 1", counts[i].name,
                            counts[i].is);
    if (o->n_host_blocks < 0)
        return ifl_fail(error, IFL_E_INPUT, "n_host_blocks is %d, expected at least 0",
                        o->n_host_blocks);
    if (o->window_tokens < 0)
        return ifl_fail(error, IFL_E_INPUT, "window_tokens is %d, expected at least 0",
                        o->window_tokens);
    if (adapters_check(o, error) < 0)
        return error->code;
    const int rc = architecture_check(&o->model, error);
    return rc == 0 ? stages_check(o, error) : rc;
}

int dtype_check(const char *option, enum ifl_engine_dtype asked, enum ifl_engine_dtype one,
                enum ifl_engine_dtype other, const char *executor, struct ifl_error *error)
{
    static const char *const names[] = {"auto", "fp32", "bf16", "fp16", "fp8"};
    char number[24];
    const char *found = number;
    if (asked == IFL_DTYPE_AUTO || asked == one || asked == other)
        return 0;
    snprintf(number, sizeof number, "number %u", (unsigned)asked);
    if ((size_t)asked < sizeof names / sizeof *names)
        found = names[asked];
    if (one == other)
        return ifl_fail(error, IFL_E_INPUT, "%s is %s, executor %s expects auto or %s", option,
                        found, executor, names[one]);
    return ifl_fail(error, IFL_E_INPUT, "%s is %s, executor %s expects auto, %s or %s", option,
                    found, executor, names[one], names[other]);
}

/* ---- what a step asks of it ---- */

static int refuse(struct ifl_error *error, const char *what, int64_t found, int64_t limit)
{
    return ifl_fail(error, IFL_E_DEVICE, "the step has %s %lld, the engine was opened for %lld",
                    what, (long long)found, (long long)limit);
}

static int check_copies(const struct ifl_copy *copies, size_t n, int32_t from_blocks,
                        int32_t to_blocks, struct ifl_error *error)
{
    for (size_t i = 0; i < n; i++) {
        if (copies[i].from >= (uint32_t)from_blocks)
            return refuse(error, "a copy from block", copies[i].from, from_blocks);
        if (copies[i].to >= (uint32_t)to_blocks)
            return refuse(error, "a copy to block", copies[i].to, to_blocks);
    }
    return 0;
}

static int check_tokens(const struct ifl_engine_options *limits, const struct ifl_engine_step *step,
                        int32_t from, int32_t to, struct ifl_error *error)
{
    for (int32_t i = from; i < to; i++) {
        if (step->token_ids[i] < 0 || step->token_ids[i] >= limits->model.n_vocab)
            return refuse(error, "token", step->token_ids[i], limits->model.n_vocab);
        if (step->positions[i] < 0 || step->positions[i] >= limits->max_tokens)
            return refuse(error, "position", step->positions[i], limits->max_tokens);
        if (i > from && step->positions[i] != step->positions[i - 1] + 1)
            return ifl_fail(error, IFL_E_DEVICE,
                            "position %d follows %d within a sequence, expected one more",
                            step->positions[i], step->positions[i - 1]);
    }
    return 0;
}

static int check_slots(const struct ifl_engine_options *limits, const struct ifl_engine_step *step,
                       int32_t seq, struct ifl_error *error)
{
    const int32_t first = step->first_token[seq], end = step->first_token[seq + 1];
    const int32_t n_slots = step->n_slots[seq];
    if (n_slots > limits->max_tokens)
        return refuse(error, "slots:", n_slots, limits->max_tokens);
    if (n_slots < end - first)
        return ifl_fail(error, IFL_E_DEVICE, "sequence %d has %d slots, too few for its %d tokens",
                        seq, n_slots, end - first);
    const int32_t n_before = n_slots - (end - first);
    if (step->slots[first] < 0 || step->slots[first] > n_before)
        return ifl_fail(error, IFL_E_DEVICE,
                        "the first token of sequence %d has slot %d, expected 0 to %d", seq,
                        step->slots[first], n_before);
    for (int32_t i = first + 1; i < end; i++)
        if (step->slots[i] != n_before + i - first)
            return ifl_fail(error, IFL_E_DEVICE,
                            "token %d of sequence %d has slot %d, expected %d of %d", i - first,
                            seq, step->slots[i], n_before + i - first, n_slots);
    return 0;
}

static int check_blocks(const struct ifl_engine_options *limits, const uint32_t *blocks, int32_t n,
                        struct ifl_error *error)
{
    for (int32_t i = 0; i < n; i++)
        if (blocks[i] >= (uint32_t)limits->n_blocks)
            return refuse(error, "block", blocks[i], limits->n_blocks);
    return 0;
}

static int check_table(const struct ifl_engine_options *limits, const struct ifl_engine_step *step,
                       int32_t seq, struct ifl_error *error)
{
    const int32_t from = step->first_block[seq], n = step->first_block[seq + 1] - from;
    const int32_t n_slots = step_n_slots(step, seq);
    if ((int64_t)n * limits->block_tokens < n_slots)
        return ifl_fail(error, IFL_E_DEVICE,
                        "sequence %d has %d blocks of %d tokens, too few for %d slots", seq, n,
                        limits->block_tokens, n_slots);
    return check_blocks(limits, step->block_ids + from, n, error);
}

/* `counts` is NULL or holds for each sequence at most its number of tokens. */
static int check_counts(const struct ifl_engine_step *step, const int32_t *counts, int32_t seq,
                        const char *of, struct ifl_error *error)
{
    const int32_t n_tokens = step->first_token[seq + 1] - step->first_token[seq];
    if (counts && (counts[seq] < 0 || counts[seq] > n_tokens))
        return ifl_fail(error, IFL_E_DEVICE, "sequence %d has %d %s, expected 0 to its %d tokens",
                        seq, counts[seq], of, n_tokens);
    return 0;
}

static int check_seq(const struct ifl_engine_options *limits, const struct ifl_engine_step *step,
                     int32_t seq, struct ifl_error *error)
{
    if (check_tokens(limits, step, step->first_token[seq], step->first_token[seq + 1], error) < 0 ||
        (step->slots && check_slots(limits, step, seq, error) < 0) ||
        check_table(limits, step, seq, error) < 0 ||
        check_counts(step, step->n_rows, seq, "rows of logits", error) < 0 ||
        check_counts(step, step->n_voters, seq, "voters", error) < 0)
        return error->code;
    if (step->adapters && (step->adapters[seq] < 0 || step->adapters[seq] > limits->n_adapters))
        return refuse(error, "adapter", step->adapters[seq], limits->n_adapters);
    return 0;
}

static int check_seqs(const struct ifl_engine_options *limits, const struct ifl_engine_step *step,
                      struct ifl_error *error)
{
    const int32_t n_seqs = step->n_seqs;
    if (n_seqs == 0 && step->n_tokens > 0)
        return ifl_fail(error, IFL_E_DEVICE, "the step has %d tokens of no sequence",
                        step->n_tokens);
    if (n_seqs > 0 && (step->first_token[0] != 0 || step->first_token[n_seqs] != step->n_tokens ||
                       step->first_block[0] != 0))
        return ifl_fail(error, IFL_E_DEVICE, "the sequences of a step do not cover its tokens");
    for (int32_t i = 0; i < n_seqs; i++)
        if (step->first_token[i + 1] <= step->first_token[i] ||
            step->first_block[i + 1] < step->first_block[i])
            return ifl_fail(error, IFL_E_DEVICE, "sequence %d of a step has no token", i);
    for (int32_t i = 0; i < n_seqs; i++)
        if (check_seq(limits, step, i, error) < 0)
            return error->code;
    return 0;
}

/* ---- kept K/V ---- */

static int check_keep(const struct ifl_engine_options *limits, const struct ifl_engine_keep *keep,
                      struct ifl_error *error)
{
    const struct ifl_engine_model *m = &limits->model;
    const int64_t n_slots = (int64_t)keep->n_blocks * limits->block_tokens;
    const size_t n_heads = (size_t)m->n_layers * (size_t)m->n_kv_heads;
    const size_t n_kept = keep->n_kept < 0 ? 0 : (size_t)keep->n_kept;
    if (keep->n_blocks < 0 || keep->n_kept < 0 || keep->n_kept > n_slots)
        return ifl_fail(error, IFL_E_DEVICE, "%d slots are kept of %d blocks of %d tokens",
                        keep->n_kept, keep->n_blocks, limits->block_tokens);
    if (n_kept > 0 && (!keep->kept || !keep->block_ids))
        return ifl_fail(error, IFL_E_DEVICE, "slots are kept without their arrays");
    for (size_t i = 0; i < n_heads * n_kept; i++)
        if (keep->kept[i] < (int32_t)(i % n_kept) || keep->kept[i] >= n_slots)
            return ifl_fail(error, IFL_E_DEVICE, "slot %d is kept as slot %zu of %lld",
                            keep->kept[i], i % n_kept, (long long)n_slots);
    return check_blocks(limits, keep->block_ids, n_kept > 0 ? keep->n_blocks : 0, error);
}

static int check_keeps(const struct ifl_engine_options *limits, const struct ifl_engine_step *step,
                       struct ifl_error *error)
{
    for (size_t i = 0; i < step->n_keeps; i++)
        if (check_keep(limits, &step->keeps[i], error) < 0)
            return error->code;
    return 0;
}

/* ---- the whole step ---- */

static bool has_any(const struct ifl_engine_step *step, const int32_t *counts)
{
    for (int32_t i = 0; counts && i < step->n_seqs; i++)
        if (counts[i] != 0)
            return true;
    return false;
}

/* An array with a positive count must not be NULL. */
static int check_arrays(const struct ifl_engine_step *step, struct ifl_error *error)
{
    const struct {
        const char *name;
        const void *array;
        bool wanted;
    } arrays[] = {
        {"token_ids", step->token_ids, step->n_tokens > 0},
        {"positions", step->positions, step->n_tokens > 0},
        {"first_token", step->first_token, step->n_seqs > 0},
        {"first_block", step->first_block, step->n_seqs > 0},
        {"block_ids", step->block_ids, step->n_seqs > 0},
        {"n_slots", step->n_slots, step->n_seqs > 0 && step->slots},
        {"sampled", step->sampled, has_any(step, step->n_rows)},
        {"votes", step->votes, has_any(step, step->n_voters)},
        {"outs", step->outs, step->n_outs > 0},
        {"ins", step->ins, step->n_ins > 0},
        {"copies", step->copies, step->n_copies > 0},
        {"keeps", step->keeps, step->n_keeps > 0},
        {"spoilt", step->spoilt, step->n_spoilt > 0},
    };
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        if (arrays[i].wanted && !arrays[i].array)
            return ifl_fail(error, IFL_E_DEVICE, "the step has no array %s", arrays[i].name);
    return 0;
}

int step_check(const struct ifl_engine_options *limits, const struct ifl_engine_step *step,
               struct ifl_error *error)
{
    const int32_t n_blocks = limits->n_blocks, n_host = limits->n_host_blocks;
    if (step->n_tokens < 0 || step->n_tokens > limits->max_step_tokens)
        return refuse(error, "tokens:", step->n_tokens, limits->max_step_tokens);
    if (step->n_seqs < 0 || step->n_seqs > limits->max_step_seqs)
        return refuse(error, "sequences:", step->n_seqs, limits->max_step_seqs);
    if (check_arrays(step, error) < 0 ||
        check_copies(step->outs, step->n_outs, n_blocks, n_host, error) < 0 ||
        check_copies(step->ins, step->n_ins, n_host, n_blocks, error) < 0 ||
        check_copies(step->copies, step->n_copies, n_blocks, n_blocks, error) < 0)
        return error->code;
    for (size_t i = 0; i < step->n_spoilt; i++)
        if (step->spoilt[i] >= (uint32_t)n_blocks)
            return refuse(error, "a spoilt block", step->spoilt[i], n_blocks);
    if (step->slots && limits->window_tokens > 0)
        return ifl_fail(error, IFL_E_DEVICE,
                        "the step has slots, attention sees the last %d positions alone",
                        limits->window_tokens);
    if (check_keeps(limits, step, error) < 0)
        return error->code;
    return check_seqs(limits, step, error);
}

/* ---- reading a block back ---- */

int block_check(const struct ifl_engine_options *limits, enum ifl_engine_pool pool, uint32_t block,
                struct ifl_error *error)
{
    const int32_t n = pool == IFL_DEVICE_POOL ? limits->n_blocks : limits->n_host_blocks;
    if (block >= (uint32_t)n)
        return ifl_fail(error, IFL_E_DEVICE, "block %u is asked for, the pool has %d", block, n);
    return 0;
}

int blocks_check(const struct ifl_engine_options *limits, const uint32_t *blocks, size_t n,
                 struct ifl_error *error)
{
    for (size_t i = 0; i < n; i++)
        if (block_check(limits, IFL_DEVICE_POOL, blocks[i], error) < 0)
            return error->code;
    return 0;
}
