#include "live/replay_record.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

struct replay_record *replay_records_add(struct replay_records *records)
{
    if (array_room(&records->of, records->n, &records->cap, 1024, sizeof *records->of) < 0)
        return NULL;
    struct replay_record *record = &records->of[records->n++];
    *record = (struct replay_record){0};
    return record;
}

void replay_records_free(struct replay_records *records)
{
    for (size_t i = 0; i < records->n; i++) {
        free(records->of[i].error);
        free(records->of[i].gap_ns);
    }
    free(records->of);
    *records = (struct replay_records){0};
}

/* ---- rows ---- */

/* The columns of a simulated run, then those of a live one alone. */
const char replay_requests_header[] =
    "point,request_id,replica,status,arrival_s,first_scheduled_s,first_token_s,finish_s,"
    "prompt_tokens,output_tokens,cached_tokens,ttft_s,tpot_s,e2e_s,max_itl_s,preemptions,"
    "swap_outs,queue_s,prefill_s,decode_s,stalled_s,ttft_slo_s,tpot_slo_s,"
    "due_s,sent_s,late_s,connect_s,first_byte_s,end_s,ttft_due_s,e2e_due_s,prompt_tokens_server,"
    "tokens_counted,chunks,http_status,error\n";

size_t replay_request_bytes(const struct replay_record *record)
{
    return 36 * ROW_NUMBER_BYTES + (record->error ? 2 * strlen(record->error) + 4 : 0);
}

static int64_t since(int64_t time_ns, int64_t from_ns)
{
    return time_ns == IFL_NEVER ? IFL_NEVER : time_ns - from_ns;
}

static int64_t tpot_ns(const struct replay_record *r)
{
    return r->status == IFL_FINISHED && r->output_tokens > 1
               ? (r->last_token_ns - r->first_token_ns + (r->output_tokens - 1) / 2) /
                     (r->output_tokens - 1)
               : IFL_NEVER;
}

static int64_t longest_gap_ns(const struct replay_record *r)
{
    int64_t longest_ns = r->n_gaps > 0 ? 0 : IFL_NEVER;
    for (int32_t i = 0; i < r->n_gaps; i++)
        longest_ns = r->gap_ns[i] > longest_ns ? r->gap_ns[i] : longest_ns;
    return longest_ns;
}

/* As of a simulated run. What happens in the server is empty unless it says so. */
static char *put_life(char *at, const struct replay_record *r)
{
    const int64_t ttft_ns = replay_ttft_ns(r), e2e_ns = replay_e2e_ns(r);
    const bool queued = r->queue_ns != IFL_NEVER;
    at = row_put_whole(at, 0);
    at = row_put_whole(at, (int64_t)r->id);
    at = row_put_whole(at, 0);
    at = row_put_text(at, ifl_status_names[r->status]);
    at = row_put_seconds(at, r->due_ns);
    at = row_put_seconds(at, queued ? r->sent_ns + r->queue_ns : IFL_NEVER);
    at = row_put_seconds(at, r->first_token_ns);
    at = row_put_seconds(at, r->status == IFL_FINISHED ? r->last_token_ns : r->end_ns);
    at = row_put_whole(at, r->prompt_tokens);
    at = row_put_whole(at, r->output_tokens);
    at = row_put_count(at, r->cached_tokens);
    at = row_put_seconds(at, ttft_ns);
    at = row_put_seconds(at, tpot_ns(r));
    at = row_put_seconds(at, e2e_ns);
    at = row_put_seconds(at, longest_gap_ns(r));
    at = row_put_whole(at, 0);
    at = row_put_whole(at, 0);
    at = row_put_seconds(at, r->queue_ns);
    at = row_put_seconds(at, queued ? since(ttft_ns, r->queue_ns) : IFL_NEVER);
    at = row_put_seconds(at, e2e_ns == IFL_NEVER ? IFL_NEVER : e2e_ns - ttft_ns);
    at = row_put_seconds(at, IFL_NEVER);
    at = row_put_seconds(at, r->ttft_slo_ns);
    return row_put_seconds(at, r->tpot_slo_ns);
}

char *replay_put_request(char *at, const struct replay_record *r)
{
    const bool finished = r->status == IFL_FINISHED;
    at = put_life(at, r);
    at = row_put_seconds(at, r->due_ns);
    at = row_put_seconds(at, r->sent_ns);
    at = row_put_seconds(at, r->sent_ns - r->due_ns);
    at = row_put_seconds(at, r->connect_ns < 0 ? IFL_NEVER : r->connect_ns);
    at = row_put_seconds(at, r->first_byte_ns);
    at = row_put_seconds(at, r->end_ns);
    at = row_put_seconds(at, since(r->first_token_ns, r->due_ns));
    at = row_put_seconds(at, finished ? since(r->last_token_ns, r->due_ns) : IFL_NEVER);
    at = row_put_count(at, r->prompt_tokens_server);
    at = row_put_whole(at, r->counted);
    at = row_put_whole(at, r->n_chunks);
    at = row_put_count(at, r->http_status > 0 ? r->http_status : -1);
    at = row_put_text(at, r->error ? r->error : "");
    return row_put_end(at);
}

/* ---- sums ---- */

/* True and the number if the record has one. */
typedef bool sample_fn(const struct replay_record *record, int which, int64_t *ns);

static bool sample_late(const struct replay_record *record, int which, int64_t *ns)
{
    (void)which;
    *ns = record->sent_ns - record->due_ns;
    return true;
}

static bool sample_latency(const struct replay_record *r, int which, int64_t *ns)
{
    const int64_t late_ns = r->sent_ns - r->due_ns;
    if (r->status != IFL_FINISHED)
        return false;
    switch ((enum replay_latency)which) {
    case REPLAY_TTFT:
        *ns = replay_ttft_ns(r);
        break;
    case REPLAY_TTFT_DUE:
        *ns = replay_ttft_ns(r) + late_ns;
        break;
    case REPLAY_E2E:
        *ns = replay_e2e_ns(r);
        break;
    case REPLAY_E2E_DUE:
        *ns = replay_e2e_ns(r) + late_ns;
        break;
    case REPLAY_CONNECT:
        *ns = r->connect_ns;
        break;
    }
    return *ns >= 0;
}

static int spread(const struct replay_records *records, sample_fn *sample, int which,
                  struct replay_spread *spread, struct ifl_error *error)
{
    double *s = malloc((records->n + 1) * sizeof *s);
    size_t n = 0;
    int64_t ns = -1;
    if (!s)
        return ifl_fail_nomem(error);
    for (size_t i = 0; i < records->n; i++)
        if (sample(&records->of[i], which, &ns))
            s[n++] = ifl_s_from_ns(ns);
    gsl_sort(s, 1, n);
    *spread = (struct replay_spread){NAN, NAN, NAN, NAN};
    if (n > 0)
        *spread =
            (struct replay_spread){gsl_stats_quantile_from_sorted_data(s, 1, n, 0.5),
                                   gsl_stats_quantile_from_sorted_data(s, 1, n, 0.9),
                                   gsl_stats_quantile_from_sorted_data(s, 1, n, 0.99), s[n - 1]};
    free(s);
    return 0;
}

int replay_judge(const struct replay_records *records, struct replay_client *client,
                 struct ifl_error *error)
{
    client->n_sent = records->n;
    if (spread(records, sample_late, 0, &client->late_s, error) < 0)
        return error->code;
    client->is_bound = client->late_s.p99 > client->late_bound_s;
    return 0;
}

int replay_spread_of(const struct replay_records *records, enum replay_latency latency,
                     struct replay_spread *of, struct ifl_error *error)
{
    return spread(records, sample_latency, (int)latency, of, error);
}
