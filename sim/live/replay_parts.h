/* Functions that the files of the load client share: replay.c has the loop, replay_stream.c handles
 * a request, replay_scrape.c the server's metrics, replay_report.c the files at the end. */
#ifndef SIM_LIVE_REPLAY_PARTS_H
#define SIM_LIVE_REPLAY_PARTS_H

#include "base/clock.h"
#include "base/event_heap.h"
#include "live/replay.h"
#include "live/replay_answer.h"
#include "live/replay_sse.h"
#include "run/workload.h"

struct replay_scrape; /* replay_scrape.c */

struct replay {
    const struct replay_options *options;
    struct ifl_trace trace;
    struct workload workload;
    struct replay_body body; /* with the model's name */
    struct replay_vocabulary vocabulary;
    struct replay_http *http;
    int64_t start_ns; /* of CLOCK_MONOTONIC */
    struct replay_records records;
    struct event_heap timers; /* their payload: a record and what happens (replay_stream.c) */
    uint64_t n_timers;
    size_t n_open;              /* streams under way */
    bool warming;               /* warm-up: requests are in no report */
    struct replay_text *ready;  /* [trace.n] bodies made before they are due */
    struct replay_known *known; /* [trace.n] what the prompts of turns begin with */
    size_t next_ready, n_ready_bytes;
    int32_t *ids; /* [longest prompt] scratch */
    struct replay_rows requests, chunks;
    int64_t flushed_ns;
    struct replay_scrape *scrape; /* NULL: none */
    uint64_t n_chunks;
    struct ifl_error error; /* the first error; it ends the run */
    bool failed;
};

static inline int64_t replay_now(const struct replay *replay)
{
    return clock_steady_ns() - replay->start_ns;
}

/* Keeps the first error of a callback. */
int replay_give_up(struct replay *replay, const struct ifl_error *error);

/* ---- replay_stream.c ---- */

/* Sends the request, which is due at arrival->sent_ns. */
int replay_send(struct replay *replay, const struct arrival *arrival, struct ifl_error *error);
/* Ends the streams that are due now: clients that leave, and requests that take too long. */
int replay_expire(struct replay *replay, int64_t now_ns, struct ifl_error *error);
/* Ends all streams, which then have failed. */
void replay_end_all(struct replay *replay, const char *why);
/* Makes the body of a request, to be kept in `ready` or sent at once. */
int replay_make_body(struct replay *replay, const struct arrival *arrival, struct replay_text *text,
                     struct ifl_error *error);

/* ---- replay_scrape.c ---- */

int replay_scrape_open(struct replay *replay, const char *path, struct ifl_error *error);
void replay_scrape_destroy(struct replay_scrape *scrape); /* accepts NULL */
/* Reads the metrics if they are due; *next_ns is the next time. */
int replay_scrape_look(struct replay *replay, int64_t now_ns, int64_t *next_ns,
                       struct ifl_error *error);
/* Reads the metrics a last time, waiting a short time, and closes the file. Returns `code`, or the
 * code of an error now. */
int replay_scrape_finish(struct replay *replay, int code, struct ifl_error *error);

/* ---- replay_report.c ---- */

int replay_report(struct replay *replay, struct replay_result *result, struct ifl_error *error);

#endif
