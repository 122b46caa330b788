#include "cost/roofline_window.h"

#include <math.h>

/* A kernel works on tiles of so many queries: the keys of a tile are the window of its first query
 * and those up to its last. */
enum { TILE_QUERIES = 128 };

/* Pairs of a query and a key: of n queries behind c tokens, the i-th of which sees c + i. */
static double pairs(double n, double c)
{
    return n * c + n * n / 2;
}

/* In a chunk the queries behind its first see half of it in the mean. */
static double pairs_seen(double n, double c, double window, bool chunked)
{
    const double before = fmin(fmax(window - c, 0), n); /* queries that see everything */
    return pairs(before, c) + (n - before) * (chunked ? window / 2 : window);
}

double window_context(const struct roofline_rank *rank, double n_seqs, double context_tokens)
{
    const double most = n_seqs * rank->window_tokens;
    return context_tokens <= most ? context_tokens : rank->model->chunked ? most / 2 : most;
}

struct ifl_step_totals window_totals(const struct roofline_rank *rank,
                                     const struct ifl_step_totals *totals)
{
    struct ifl_step_totals seen = *totals;
    seen.decode_context =
        (int64_t)window_context(rank, totals->n_decode_seqs, (double)totals->decode_context);
    if (totals->n_prefill_tokens == 0)
        return seen;
    const bool chunked = rank->model->chunked;
    const double window = rank->window_tokens + (chunked ? 0 : TILE_QUERIES);
    const double n = (double)totals->n_prefill_tokens / totals->n_prefill_seqs;
    const double c = (double)totals->prefill_q_kv / totals->n_prefill_tokens;
    const double frac = pairs_seen(n, c, window, chunked) / pairs(n, c);
    seen.prefill_q_kv = (int64_t)((double)totals->prefill_q_kv * frac);
    seen.prefill_q_q = (int64_t)((double)totals->prefill_q_q * frac);
    seen.max_prefill_kv = (int32_t)fmin(totals->max_prefill_kv, window);
    return seen;
}
