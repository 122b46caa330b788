/* Replays the steps of a recorded run one after the other. A step begins no earlier than the
 * recorded one and ends when that ended, so the host's time between two steps is included. The run
 * must plan the same steps as the recording: the first step that differs is an error, and shows
 * where the two schedulers part. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"
#include "cost/kind.h"
#include "inflight/time.h"

enum {
    POINT,
    REPLICA,
    PREFILL_TOKENS,
    PREFILL_SEQS,
    DECODE_SEQS,
    CONTEXT,
    START,
    DURATION,
    N_READ
};

static const char *const names[N_READ] = {
    "point",       "replica",        "prefill_tokens", "prefill_seqs",
    "decode_seqs", "context_tokens", "start_s",        "duration_s",
};

enum { NO_STEP = -1, MAX_REPLICAS = 65536 };

struct recorded_step {
    int64_t start_ns, end_ns, context_tokens;
    int32_t prefill_tokens, prefill_seqs, decode_seqs;
    int32_t next; /* of the same replica, or NO_STEP */
};

struct recorded {
    struct cost base;
    char path[512];
    uint32_t n_replicas;
    struct lane { /* of a replica */
        int32_t next;
        int64_t n_done;
    } * lanes; /* [n_replicas], behind the steps */
    struct {
        uint32_t replica;
        int64_t start_ns;
    } failed;
    struct recorded_step steps[];
};

/* ---- replaying ---- */

static bool same(const struct recorded_step *step, const struct ifl_step_totals *totals)
{
    return step->prefill_tokens == totals->n_prefill_tokens &&
           step->prefill_seqs == totals->n_prefill_seqs &&
           step->decode_seqs == totals->n_decode_seqs &&
           step->context_tokens == totals->decode_context;
}

static const struct recorded_step *next_of(const struct recorded *run, uint32_t replica)
{
    const struct lane *lane = replica < run->n_replicas ? &run->lanes[replica] : NULL;
    return lane && lane->next != NO_STEP ? &run->steps[lane->next] : NULL;
}

static int64_t recorded_start_ns(const struct cost *cost, uint32_t replica, int64_t start_ns)
{
    const struct recorded_step *step = next_of((const struct recorded *)cost, replica);
    return step && step->start_ns > start_ns ? step->start_ns : start_ns;
}

static int64_t recorded_ns(struct cost *cost, uint32_t replica, int64_t start_ns,
                           const struct ifl_step_totals *totals)
{
    struct recorded *run = (struct recorded *)cost;
    const struct recorded_step *step = next_of(run, replica);
    run->failed.replica = replica;
    run->failed.start_ns = start_ns;
    if (!step || !same(step, totals) || step->end_ns < start_ns)
        return IFL_E_INPUT;
    run->lanes[replica].next = step->next;
    run->lanes[replica].n_done++;
    return step->end_ns - start_ns;
}

static int why_not(const struct cost *cost, const struct ifl_step_totals *totals,
                   struct ifl_error *error)
{
    const struct recorded *run = (const struct recorded *)cost;
    const uint32_t replica = run->failed.replica;
    const struct lane *lane = replica < run->n_replicas ? &run->lanes[replica] : NULL;
    const long long n_done = lane ? (long long)lane->n_done : 0;
    if (!lane || lane->next == NO_STEP)
        return ifl_fail_at(error, run->path, 0, 0,
                           "replica %u recorded %lld steps, and this run asks for one more",
                           replica, n_done);
    const struct recorded_step *step = &run->steps[lane->next];
    if (same(step, totals))
        return ifl_fail_at(error, run->path, 0, 0,
                           "step %lld of replica %u begins at %.9f s, after the recorded one ended "
                           "at %.9f s: these are not the recording's arrivals",
                           n_done, replica, ifl_s_from_ns(run->failed.start_ns),
                           ifl_s_from_ns(step->end_ns));
    return ifl_fail_at(
        error, run->path, 0, 0,
        "step %lld of replica %u has %d prompt tokens of %d sequences and decodes %d "
        "with %lld tokens of context; recorded: %d of %d, and %d with %lld",
        n_done, replica, totals->n_prefill_tokens, totals->n_prefill_seqs, totals->n_decode_seqs,
        (long long)totals->decode_context, step->prefill_tokens, step->prefill_seqs,
        step->decode_seqs, (long long)step->context_tokens);
}

/* ---- reading ---- */

static int find_columns(const struct table *table, int column[N_READ], struct ifl_error *error)
{
    for (int c = 0; c < N_READ; c++) {
        column[c] = table_column(table, names[c]);
        if (column[c] < 0)
            return ifl_fail_at(error, table->path, 1, 0,
                               "no column %s, expected the steps.csv of a run", names[c]);
    }
    return 0;
}

static int read_step(const struct table *table, size_t row, const int column[N_READ],
                     struct recorded_step *step, uint32_t *replica, struct ifl_error *error)
{
    static const double most[N_READ] = {
        INT32_MAX, MAX_REPLICAS - 1, INT32_MAX, INT32_MAX, INT32_MAX, 9e15, 4e9, 4e9};
    double value[N_READ];
    for (int c = 0; c < N_READ; c++)
        if (table_number(table, row, (size_t)column[c], 0, most[c], &value[c], error))
            return error->code;
    if (strcmp(table_cell(table, row, (size_t)column[POINT]),
               table_cell(table, 0, (size_t)column[POINT])) != 0)
        return table_fail(table, row, (size_t)column[POINT], "one point of a run", error);
    *replica = (uint32_t)value[REPLICA];
    *step = (struct recorded_step){
        .start_ns = ifl_ns_from_s(value[START]),
        .end_ns = ifl_ns_from_s(value[START]) + ifl_ns_from_s(value[DURATION]),
        .context_tokens = (int64_t)value[CONTEXT],
        .prefill_tokens = (int32_t)value[PREFILL_TOKENS],
        .prefill_seqs = (int32_t)value[PREFILL_SEQS],
        .decode_seqs = (int32_t)value[DECODE_SEQS],
        .next = NO_STEP,
    };
    return 0;
}

static int read_steps(const struct table *table, struct recorded *run, int32_t *last,
                      struct ifl_error *error)
{
    int column[N_READ] = {0};
    int rc = find_columns(table, column, error);
    for (size_t row = 0; rc == 0 && row < table->n_rows; row++) {
        uint32_t replica = 0;
        rc = read_step(table, row, column, &run->steps[row], &replica, error);
        if (rc < 0)
            break;
        if (last[replica] == NO_STEP)
            run->lanes[replica].next = (int32_t)row;
        else
            run->steps[last[replica]].next = (int32_t)row;
        last[replica] = (int32_t)row;
        if (replica >= run->n_replicas)
            run->n_replicas = replica + 1;
    }
    return rc;
}

static struct recorded *allocate(size_t n_steps)
{
    const size_t at_lanes = sizeof(struct recorded) + n_steps * sizeof(struct recorded_step);
    struct recorded *run = calloc(1, at_lanes + MAX_REPLICAS * sizeof(struct lane));
    if (!run)
        return NULL;
    run->lanes = (struct lane *)(void *)((char *)run + at_lanes);
    for (size_t i = 0; i < MAX_REPLICAS; i++)
        run->lanes[i].next = NO_STEP;
    return run;
}

static struct recorded *build(const struct table *table, struct ifl_error *error)
{
    struct recorded *run = table->n_rows < INT32_MAX ? allocate(table->n_rows) : NULL;
    int32_t *last = malloc(MAX_REPLICAS * sizeof *last);
    int rc = run && last ? 0 : ifl_fail_nomem(error);
    for (size_t i = 0; rc == 0 && i < MAX_REPLICAS; i++)
        last[i] = NO_STEP;
    if (rc == 0)
        rc = read_steps(table, run, last, error);
    free(last);
    if (rc == 0)
        return run;
    free(run);
    return NULL;
}

struct cost *cost_create_recorded(const char *dir, struct ifl_error *error)
{
    struct table table;
    char path[512];
    snprintf(path, sizeof path, "%s/steps.csv", dir);
    if (table_read(path, &table, error))
        return NULL;
    struct recorded *run = build(&table, error);
    table_free(&table);
    if (!run)
        return NULL;
    run->base = (struct cost){
        .recorded_start_ns = recorded_start_ns, .recorded_ns = recorded_ns, .why_not = why_not};
    snprintf(run->path, sizeof run->path, "%s", path);
    return &run->base;
}
