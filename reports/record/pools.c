#include "record/pools.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tables/columns.h"
#include "tables/row.h"

static int number_replicas(struct pools *pools, size_t n_requests)
{
    struct ifl_error unread; /* there is no memory */
    for (size_t i = 0; i < pools->n; i++)
        pools->n_replicas += (size_t)pools->of[i].n_replicas;
    pools->pool_of = calloc(pools->n_replicas + 1, sizeof *pools->pool_of);
    pools->steps = calloc(pools->n, sizeof *pools->steps);
    pools->moves = calloc(pools->n, sizeof *pools->moves);
    pools->tallies = calloc(pools->n, sizeof *pools->tallies);
    if (!pools->pool_of || !pools->steps || !pools->moves || !pools->tallies)
        return IFL_E_NOMEM;
    for (size_t i = 0; i < pools->n; i++) {
        const struct ifl_pool *pool = &pools->of[i];
        pools->steps[i].last_end_ns = INT64_MIN;
        if (tally_open(&pools->tallies[i], n_requests, &unread))
            return IFL_E_NOMEM;
        for (int32_t r = pool->first; r < pool->first + pool->n_replicas; r++)
            pools->pool_of[r] = (uint32_t)i;
    }
    return IFL_OK;
}

/* Gaps between tokens, adapters and requests that move are not told apart by pools. */
static bool is_of_pools(const struct column *column)
{
    const size_t at = offsetof(struct ifl_summary, itl_s);
    const bool is_gap = column->offset >= at && column->offset < at + sizeof(struct ifl_quantiles);
    const bool is_of_all = column->offset >= offsetof(struct ifl_summary, n_adapters) &&
                           column->offset <= offsetof(struct ifl_summary, down_s);
    return column->type != COLUMN_TEXT && !is_gap && !is_of_all;
}

static int write_header(struct pools *pools, struct ifl_error *error)
{
    static const char first[] = "point,pool,model,hardware,replicas,gpus,";
    size_t n_bytes = sizeof first;
    for (size_t i = 0; i < n_summary_columns; i++)
        n_bytes += row_text_bytes(summary_columns[i].name);
    char *at = whole_room(&pools->file, n_bytes, error);
    if (!at)
        return error->code;
    memcpy(at, first, sizeof first - 1);
    at += sizeof first - 1;
    for (size_t i = 0; i < n_summary_columns; i++)
        if (is_of_pools(&summary_columns[i]))
            at = row_word(at, summary_columns[i].name);
    whole_commit(&pools->file, row_end(at));
    return IFL_OK;
}

int pools_open(struct pools *pools, const struct ifl_recorder_options *options,
               struct ifl_error *error)
{
    *pools = (struct pools){.of = options->pools, .n = options->n_pools, .only = options->n_pools};
    if (pools->n > 0 && number_replicas(pools, options->n_requests) < 0)
        return ifl_fail_nomem(error);
    if (pools->n == 0 || !options->pools_path)
        return IFL_OK;
    return whole_open(&pools->file, options->pools_path, error) ? error->code
                                                                : write_header(pools, error);
}

void pools_close(struct pools *pools)
{
    whole_discard(&pools->file);
    free(pools->pool_of);
    free(pools->steps);
    free(pools->moves);
    for (size_t i = 0; pools->tallies && i < pools->n; i++)
        tally_close(&pools->tallies[i]);
    free(pools->tallies);
}

static int write_row(struct pools *pools, int32_t point, const struct ifl_pool *pool,
                     const struct ifl_summary *summary, struct ifl_error *error)
{
    const size_t n_bytes = row_text_bytes(pool->name) + row_text_bytes(pool->model) +
                           row_text_bytes(pool->hardware) + 3 * ROW_NUMBER_BYTES +
                           n_summary_columns * ROW_REAL_BYTES;
    char *at = whole_room(&pools->file, n_bytes, error);
    if (!at)
        return error->code;
    at = row_int(at, point);
    at = row_text(at, pool->name);
    at = row_text(at, pool->model);
    at = row_text(at, pool->hardware);
    at = row_int(at, pool->n_replicas);
    at = row_int(at, pool->n_gpus);
    for (size_t i = 0; i < n_summary_columns; i++)
        if (is_of_pools(&summary_columns[i]))
            at = column_put(at, &summary_columns[i], summary);
    whole_commit(&pools->file, row_end(at));
    return IFL_OK;
}

/* Each pool has its own tally from now on. */
IFL_APART static void divide(struct pools *pools, const struct tally *all)
{
    pools->divided = true;
    if (pools->only < pools->n)
        tally_copy(&pools->tallies[pools->only], all);
}

void pools_take(struct pools *pools, const struct life *life, const struct tally *all)
{
    const size_t pool = life->replica >= 0 ? pools->pool_of[life->replica] : pools->n;
    if (!pools->divided && pool < pools->n && (pools->only == pools->n || pools->only == pool)) {
        pools->only = pool;
        return;
    }
    if (!pools->divided)
        divide(pools, all);
    if (pool < pools->n)
        tally_life(&pools->tallies[pool], life);
}

void pools_move(struct pools *pools, const struct ifl_move_record *move)
{
    const size_t from = move->from >= 0 ? pools->pool_of[move->from] : pools->n;
    const size_t to = move->to >= 0 ? pools->pool_of[move->to] : pools->n;
    if (from < pools->n)
        move_sums_add(&pools->moves[from], move);
    if (to < pools->n && to != from)
        move_sums_add(&pools->moves[to], move);
}

/* Its latencies, counts and steps. Rates of pools add up: they all are per second of the run. */
static int sum_up(const struct pools *pools, size_t i, const struct summary_input *run,
                  const struct ifl_summary *whole, struct ifl_summary *summary,
                  struct ifl_error *error)
{
    struct distribution latencies[N_LATENCIES], no_gaps;
    struct step_sums steps = pools->steps[i];
    struct summary_input own = *run;
    quantile_describe(NULL, NULL, 0, &no_gaps);
    no_gaps.mean_ns = (double)NAN;
    steps.last_end_ns = run->steps->last_end_ns;
    if (!pools->divided && i == pools->only) {
        *summary = *whole;
        summary_average_steps(&steps, summary);
        return IFL_OK;
    }
    own.lives.pool_of = pools->pool_of;
    own.lives.pool = (uint32_t)i;
    own.tally = &pools->tallies[i];
    own.steps = &steps;
    own.itl = &no_gaps;
    return summarize(&own, latencies, summary, error);
}

int pools_write(struct pools *pools, int32_t point, const struct summary_input *run,
                const struct ifl_summary *whole, struct ifl_error *error)
{
    struct ifl_summary summary;
    int code = IFL_OK;
    if (!whole_is_open(&pools->file))
        return IFL_OK;
    for (size_t i = 0; i < pools->n && !code; i++) {
        code = sum_up(pools, i, run, whole, &summary, error);
        move_sums_describe(&pools->moves[i], &summary);
        if (!code)
            code = write_row(pools, point, &pools->of[i], &summary, error);
    }
    return code;
}
