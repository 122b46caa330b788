/* The record of each request that a load client sent, and the files with a row for each.
 *
 * Times count from the start of the run. A row that is due while the client is busy is sent late;
 * latencies count from sent_ns, and from due_ns if their name says so. */
#ifndef SIM_LIVE_REPLAY_RECORD_H
#define SIM_LIVE_REPLAY_RECORD_H

#include "inflight/report.h"
#include "inflight/time.h"
#include "inflight/trace.h"

#include "live/replay_rows.h"

struct replay_stream;

struct replay_record {
    uint64_t id;
    bool is_retry;
    enum ifl_status status;
    int64_t due_ns, sent_ns;
    int64_t connect_ns; /* from sent_ns to a connection that takes the request; -1: none */
    int64_t first_byte_ns, first_token_ns, last_token_ns; /* IFL_NEVER: none came */
    int64_t end_ns;                                       /* the transfer was over */
    int64_t queue_ns;                                     /* as the server says; IFL_NEVER */
    int64_t ttft_slo_ns, tpot_slo_ns;
    int32_t prompt_tokens, output_tokens;        /* tokens sent; tokens received */
    int32_t prompt_tokens_server, cached_tokens; /* as the server counts; -1: it does not say */
    int32_t n_chunks;
    bool counted; /* tokens are as the server counts them */
    int32_t http_status;
    char *error;     /* owned; NULL: none */
    int64_t *gap_ns; /* [n_gaps] between chunks with tokens; owned */
    int32_t n_gaps;
    struct replay_stream *stream; /* the stream while it is under way */
};

/* Latencies of a record; IFL_NEVER where it has none. */
static inline int64_t replay_ttft_ns(const struct replay_record *r)
{
    return r->first_token_ns == IFL_NEVER ? IFL_NEVER : r->first_token_ns - r->sent_ns;
}
static inline int64_t replay_e2e_ns(const struct replay_record *r)
{
    return r->status != IFL_FINISHED ? IFL_NEVER : r->last_token_ns - r->sent_ns;
}

struct replay_records {
    struct replay_record *of;
    size_t n, cap;
};

/* Adds a zeroed record; returns NULL if memory is short. The address is valid until the next record
 * is added. */
struct replay_record *replay_records_add(struct replay_records *records);
void replay_records_free(struct replay_records *records);

extern const char replay_requests_header[];
/* Most bytes of a row. */
size_t replay_request_bytes(const struct replay_record *record);
/* Writes the row and returns the place behind it. */
char *replay_put_request(char *at, const struct replay_record *record);

struct replay_spread { /* spread of a sample; NaN if it is empty */
    double p50, p90, p99, max;
};

/* Figures about the client itself. */
struct replay_client {
    size_t n_sent;
    struct replay_spread late_s; /* sent - due */
    double late_bound_s;
    bool is_bound;        /* late_s.p99 is above the bound */
    double wall_s, cpu_s; /* time of the run without its reports */
    uint64_t n_chunks;
};

/* Fills in n_sent, late_s and is_bound. */
int replay_judge(const struct replay_records *records, struct replay_client *client,
                 struct ifl_error *error);
/* Latencies of the finished requests, from sent_ns or from due_ns. */
enum replay_latency { REPLAY_TTFT, REPLAY_TTFT_DUE, REPLAY_E2E, REPLAY_E2E_DUE, REPLAY_CONNECT };
int replay_spread_of(const struct replay_records *records, enum replay_latency latency,
                     struct replay_spread *spread, struct ifl_error *error);

#endif
