#include "run/objectives.h"

#include <math.h>
#include <string.h>

/* In place of the offset of a limit. */
#define NO_KEY SIZE_MAX

/* NOLINTBEGIN(bugprone-macro-parentheses): a field cannot stand in parentheses */
#define LATENCY(stat, metric, from)                                                                \
    {                                                                                              \
#stat "_" #metric, offsetof(struct objectives, metric.stat),                               \
            offsetof(struct ifl_summary, from.stat), false                                         \
    }
#define LATENCIES(metric, from)                                                                    \
    LATENCY(mean, metric, from), LATENCY(p50, metric, from), LATENCY(p90, metric, from),           \
        LATENCY(p95, metric, from), LATENCY(p99, metric, from)
#define SHARE(metric, from)                                                                        \
    {                                                                                              \
#metric, offsetof(struct objectives, metric), from, true                                   \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

static const struct {
    const char *name;
    size_t limit, offset;
    bool at_least;
} table[] = {
    LATENCIES(ttft_s, ttft_s),
    LATENCIES(tpot_s, tpot_s),
    LATENCIES(tbt_s, itl_s),
    LATENCIES(e2e_s, e2e_s),
    LATENCIES(queue_s, queue_s),
    SHARE(attainment_frac, offsetof(struct ifl_summary, attainment_frac)),
    SHARE(client_attainment_frac, offsetof(struct ifl_summary, client_attainment_frac)),
    SHARE(finished_frac, OBJECTIVE_FINISHED),
    {"goodput_rps", NO_KEY, offsetof(struct ifl_summary, goodput_rps), true},
};
_Static_assert(sizeof table / sizeof *table == MAX_OBJECTIVES, "one row an objective");

const char *objective_name(const struct objective *objective)
{
    return table[objective->row].name;
}

/* Some traces have a request that is longer than the model, on whatever hardware. */
static const double least_finished_frac = 0.99;

static struct objective at_row(size_t row, double limit)
{
    return (struct objective){.row = (int32_t)row,
                              .limit = limit,
                              .at_least = table[row].at_least,
                              .offset = table[row].offset};
}

static struct objective named(const char *name, double limit)
{
    size_t row = 0;
    while (strcmp(table[row].name, name) != 0)
        row++;
    return at_row(row, limit);
}

/* A latency is that of the requests that were served: of too few it means nothing. */
static struct objective served(void)
{
    struct objective objective = named("finished_frac", least_finished_frac);
    objective.is_gate = true;
    return objective;
}

static size_t from_keys(const struct objectives *of, struct objective asked[MAX_OBJECTIVES])
{
    size_t n = 0;
    for (size_t i = 0; table[i].limit != NO_KEY; i++) {
        double limit;
        memcpy(&limit, (const char *)of + table[i].limit, sizeof limit);
        if (table[i].offset == OBJECTIVE_FINISHED && limit == 0)
            limit = least_finished_frac;
        if (limit == 0)
            continue;
        asked[n] = at_row(i, limit);
        asked[n].is_gate =
            table[i].offset == OBJECTIVE_FINISHED || (asked[n].at_least && limit == 1);
        n++;
    }
    return n;
}

size_t objectives_asked(const struct capacity_config *of, struct objective asked[MAX_OBJECTIVES])
{
    switch (of->criterion) {
    case CAPACITY_SARATHI:
        asked[0] = named("p99_tbt_s", of->p99_tbt_s);
        asked[1] = named("p50_queue_s", of->delay_s);
        asked[2] = served();
        return 3;
    case CAPACITY_DELAY:
        asked[0] = named("mean_queue_s", of->delay_s);
        asked[1] = served();
        return 2;
    case CAPACITY_DISTSERVE:
        asked[0] = named("attainment_frac", of->attainment_frac);
        return 1;
    case CAPACITY_GOODPUT:
        asked[0] = named("goodput_rps", 1);
        return 1;
    case CAPACITY_OBJECTIVES:
        break;
    }
    return from_keys(&of->objectives, asked);
}

double objective_value(const struct objective *objective, const struct ifl_summary *summary)
{
    double value;
    if (objective->offset == OBJECTIVE_FINISHED)
        return (double)summary->n_finished / (double)summary->n_requests;
    memcpy(&value, (const char *)summary + objective->offset, sizeof value);
    return value;
}

double objective_margin(const struct objective *objective, double value)
{
    if (objective->is_gate && value >= objective->limit)
        return -1;
    return objective->at_least ? 1 - value / objective->limit
                               : fmax(value / objective->limit - 1, -1);
}
