#include "run/client_shares.h"

#include <math.h>
#include <stdlib.h>

int client_shares_init(struct client_shares *shares, uint32_t n_clients, int64_t from_ns,
                       struct ifl_error *error)
{
    *shares = (struct client_shares){.n = calloc(n_clients, sizeof *shares->n),
                                     .n_met = calloc(n_clients, sizeof *shares->n_met),
                                     .n_clients = n_clients,
                                     .from_ns = from_ns};
    return shares->n && shares->n_met ? 0 : ifl_fail_nomem(error);
}

void client_shares_finish(struct client_shares *shares)
{
    free(shares->n);
    free(shares->n_met);
}

/* As attainment_frac counts: a request that did not finish meets nothing, an answer of one token
 * has no gaps to be late. */
static bool meets(const struct ifl_request_record *record)
{
    const int64_t n_gaps = record->output_tokens - 1;
    if (record->status != IFL_FINISHED)
        return false;
    if (record->first_token_ns - record->arrival_ns > record->ttft_slo_ns)
        return false;
    if (record->tpot_slo_ns == IFL_NEVER || n_gaps < 1)
        return true;
    const int64_t decode_ns = record->finish_ns - record->first_token_ns;
    return (decode_ns + n_gaps / 2) / n_gaps <= record->tpot_slo_ns;
}

void client_shares_hear(void *context, const struct ifl_request_record *record)
{
    struct client_shares *shares = context;
    if (record->arrival_ns < shares->from_ns || record->client >= shares->n_clients)
        return;
    shares->n[record->client]++;
    shares->n_met[record->client] += meets(record);
}

double client_shares_least(const struct client_shares *shares)
{
    double least = (double)NAN;
    for (uint32_t c = 0; c < shares->n_clients; c++)
        if (shares->n[c] > 0)
            least = fmin(least, (double)shares->n_met[c] / (double)shares->n[c]);
    return least;
}
