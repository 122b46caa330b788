#include "validate/pairs.h"

#include <stdlib.h>

#include "inflight/minmax.h"
#include "record/life.h"

/* ---- the rows of one side in an order ---- */

struct keyed {
    uint64_t key;
    size_t row;
};

static int compare(const void *left, const void *right)
{
    const struct keyed *a = left, *b = right;
    if (a->key != b->key)
        return a->key < b->key ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static struct keyed *in_order(const struct ifl_trace *trace, bool by_id)
{
    struct keyed *order = malloc((trace->n ? trace->n : 1) * sizeof *order);
    for (size_t i = 0; order && i < trace->n; i++)
        order[i] =
            (struct keyed){by_id ? ifl_trace_id(trace, i) : (uint64_t)trace->arrival_ns[i], i};
    if (order)
        qsort(order, trace->n, sizeof *order, compare);
    return order;
}

/* ---- matching ---- */

struct match {
    struct pairs *pairs;
    struct keyed *order[N_SIDES];
    size_t n_unequal; /* pairs of different lengths */
};

static bool finished(const struct ifl_trace *trace, size_t row)
{
    return trace->outcome[row].e2e_ns != IFL_NEVER;
}

static void take(struct match *match, size_t simulated, size_t measured)
{
    struct pairs *pairs = match->pairs;
    if (!finished(pairs->trace[SIMULATED], simulated) ||
        !finished(pairs->trace[MEASURED], measured)) {
        pairs->n_unfinished++;
        return;
    }
    pairs->of[pairs->n++] = (struct pair){{simulated, measured}};
}

/* Prompts may differ by a prefix that the recording does not carry; outputs may not. */
static bool same_output(const struct match *match, size_t simulated, size_t measured)
{
    const struct ifl_trace *const *trace = match->pairs->trace;
    return trace[SIMULATED]->n_output[simulated] == trace[MEASURED]->n_output[measured];
}

static bool same_lengths(const struct match *match, size_t simulated, size_t measured)
{
    const struct ifl_trace *const *trace = match->pairs->trace;
    return same_output(match, simulated, measured) &&
           trace[SIMULATED]->n_prompt[simulated] == trace[MEASURED]->n_prompt[measured];
}

static void match_by_id(struct match *match)
{
    const struct pairs *pairs = match->pairs;
    const size_t n_simulated = pairs->trace[SIMULATED]->n, n_measured = pairs->trace[MEASURED]->n;
    for (size_t i = 0, k = 0; i < n_simulated && k < n_measured;) {
        const struct keyed s = match->order[SIMULATED][i], m = match->order[MEASURED][k];
        if (s.key == m.key) {
            match->n_unequal += !same_output(match, s.row, m.row);
            take(match, s.row, m.row);
        }
        i += s.key <= m.key;
        k += m.key <= s.key;
    }
}

static void match_by_order(struct match *match)
{
    const struct pairs *pairs = match->pairs;
    for (size_t i = 0; i < pairs->trace[SIMULATED]->n && i < pairs->trace[MEASURED]->n; i++) {
        const size_t s = match->order[SIMULATED][i].row, m = match->order[MEASURED][i].row;
        if (same_lengths(match, s, m))
            take(match, s, m);
    }
}

enum pairing { BY_ORDER, BY_ID };

static int match_in(struct pairs *pairs, enum pairing pairing, size_t *n_unequal,
                    struct ifl_error *error)
{
    struct match match = {.pairs = pairs};
    pairs->n = pairs->n_unfinished = 0;
    pairs->by_id = pairing == BY_ID;
    for (int s = 0; s < N_SIDES; s++)
        match.order[s] = in_order(pairs->trace[s], pairing == BY_ID);
    const bool room = match.order[SIMULATED] && match.order[MEASURED];
    if (room && pairs->by_id)
        match_by_id(&match);
    else if (room)
        match_by_order(&match);
    for (int s = 0; s < N_SIDES; s++)
        free(match.order[s]);
    *n_unequal = match.n_unequal;
    return room ? IFL_OK : ifl_fail_nomem(error);
}

/* ---- the part to judge first, each part by measured arrival ---- */

static bool judged(const struct pairs *pairs, const struct ifl_validation *v, size_t i)
{
    const uint64_t id = ifl_trace_id(pairs->trace[MEASURED], pairs->of[i].row[MEASURED]);
    return v->n_parts < 2 || id % v->n_parts == v->part;
}

/* Moves the judged pairs to the front and returns their number. */
static size_t judged_first(const struct pairs *pairs, const struct keyed *order,
                           const struct ifl_validation *v, struct pair *sorted)
{
    size_t n = 0, n_judged;
    for (size_t i = 0; i < pairs->n_all; i++)
        if (judged(pairs, v, order[i].row))
            sorted[n++] = pairs->of[order[i].row];
    n_judged = n;
    for (size_t i = 0; i < pairs->n_all; i++)
        if (!judged(pairs, v, order[i].row))
            sorted[n++] = pairs->of[order[i].row];
    return n_judged;
}

static int sort_pairs(struct pairs *pairs, const struct ifl_validation *v, struct ifl_error *error)
{
    struct keyed *order = malloc((pairs->n_all + 1) * sizeof *order);
    struct pair *sorted = malloc((pairs->n_all + 1) * sizeof *sorted);
    const bool room = order && sorted;
    for (size_t i = 0; room && i < pairs->n_all; i++)
        order[i] = (struct keyed){(uint64_t)pairs_arrival_ns(pairs, MEASURED, i), i};
    if (room) {
        qsort(order, pairs->n_all, sizeof *order, compare);
        pairs->n = judged_first(pairs, order, v, sorted);
        free(pairs->of);
        pairs->of = sorted;
    } else {
        free(sorted);
    }
    free(order);
    return room ? IFL_OK : ifl_fail_nomem(error);
}

static int fail_unmatched(const struct ifl_validation *v, const struct pairs *pairs,
                          struct ifl_error *error)
{
    return ifl_fail_at(error, v->measured.name, 0, 0,
                       "%zu requests, none of which finished and is one of the %zu of %s: expected "
                       "the same request_id, or equal lengths in order of arrival",
                       pairs->trace[MEASURED]->n, pairs->trace[SIMULATED]->n, v->simulated.name);
}

int pairs_match(const struct ifl_validation *v, struct pairs *pairs, struct ifl_error *error)
{
    const struct ifl_trace *const trace[N_SIDES] = {v->simulated.trace, v->measured.trace};
    const size_t n_most = ifl_min(trace[0]->n, trace[1]->n);
    size_t n_unequal;
    *pairs = (struct pairs){.trace = {trace[0], trace[1]}};
    pairs->of = malloc((n_most ? n_most : 1) * sizeof *pairs->of);
    if (!pairs->of)
        return ifl_fail_nomem(error);
    int rc = match_in(pairs, BY_ID, &n_unequal, error);
    if (rc == IFL_OK && (n_unequal > 0 || pairs->n == 0))
        rc = match_in(pairs, BY_ORDER, &n_unequal, error);
    pairs->n_all = pairs->n;
    if (rc == IFL_OK)
        rc = sort_pairs(pairs, v, error);
    if (rc == IFL_OK && pairs->n == 0)
        rc = fail_unmatched(v, pairs, error);
    for (int s = 0; s < N_SIDES; s++)
        pairs->n_alone[s] = trace[s]->n - pairs->n_all - pairs->n_unfinished;
    if (rc < 0)
        pairs_free(pairs);
    return rc;
}

void pairs_free(struct pairs *pairs)
{
    free(pairs->of);
    *pairs = (struct pairs){0};
}

/* ---- metrics ---- */

const char *const metric_name[N_METRICS] = {
    [TTFT] = "ttft_s",
    [TPOT] = "tpot_s",
    [E2E] = "e2e_s",
    [QUEUE] = "queue_s",
    [PREFILL] = "prefill_s",
    [DECODE] = "decode_s",
    [NORMALIZED] = "normalized_latency_s",
};

static int64_t between(int64_t from_ns, int64_t to_ns)
{
    return from_ns == IFL_NEVER || to_ns == IFL_NEVER ? IFL_NEVER : to_ns - from_ns;
}

int64_t pairs_metric_ns(const struct pairs *pairs, enum side side, enum metric metric, size_t i)
{
    const struct ifl_trace *trace = pairs->trace[side];
    const size_t row = pairs->of[i].row[side];
    const struct ifl_outcome *o = &trace->outcome[row];
    const int32_t n_output = trace->n_output[row];
    const int64_t decode_ns = between(o->ttft_ns, o->e2e_ns);
    switch (metric) {
    case TTFT:
        return o->ttft_ns;
    case TPOT:
        return n_output < 2 || decode_ns == IFL_NEVER ? IFL_NEVER
                                                      : life_ratio_ns(decode_ns, n_output - 1);
    case E2E:
        return o->e2e_ns;
    case NORMALIZED:
        return life_ratio_ns(o->e2e_ns, n_output);
    case QUEUE:
        return o->queue_ns;
    case PREFILL:
        return between(o->queue_ns, o->ttft_ns);
    case DECODE:
        return decode_ns;
    default:
        return IFL_NEVER;
    }
}

int64_t pairs_arrival_ns(const struct pairs *pairs, enum side side, size_t i)
{
    return pairs->trace[side]->arrival_ns[pairs->of[i].row[side]];
}

int64_t pairs_finish_ns(const struct pairs *pairs, enum side side, size_t i)
{
    return pairs_arrival_ns(pairs, side, i) + pairs_metric_ns(pairs, side, E2E, i);
}

static int64_t since_first_ns(const struct pairs *pairs, enum side side, size_t i)
{
    return pairs_arrival_ns(pairs, side, i) - pairs_arrival_ns(pairs, side, 0);
}

int64_t pairs_arrivals_apart_ns(const struct pairs *pairs)
{
    int64_t most_ns = 0;
    for (size_t i = 0; i < pairs->n; i++) {
        const int64_t apart_ns =
            since_first_ns(pairs, SIMULATED, i) - since_first_ns(pairs, MEASURED, i);
        most_ns = ifl_max(most_ns, ifl_max(apart_ns, -apart_ns));
    }
    return most_ns;
}

size_t pairs_gather(const struct pairs *pairs, enum metric metric, const bool *of,
                    int64_t *value[N_SIDES])
{
    size_t n = 0;
    for (size_t i = 0; i < pairs->n; i++) {
        const int64_t simulated = pairs_metric_ns(pairs, SIMULATED, metric, i);
        const int64_t measured = pairs_metric_ns(pairs, MEASURED, metric, i);
        if ((of && !of[i]) || simulated == IFL_NEVER || measured == IFL_NEVER)
            continue;
        value[SIMULATED][n] = simulated;
        value[MEASURED][n++] = measured;
    }
    return n;
}
