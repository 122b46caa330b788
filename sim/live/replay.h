/* A load client: sends the requests of a workload to a server of OpenAI's API, in wall time.
 *
 * Requests are due as in a simulated run (run/workload.h): by stamps and draws, in closed loops, as
 * turns behind the answer before, and again after a client has left. One thread sends, reads and
 * writes. Latencies of a request are counted both from the time that it was due and from the time
 * that it was sent. A run in which the client was the bottleneck is marked. */
#ifndef SIM_LIVE_REPLAY_H
#define SIM_LIVE_REPLAY_H

#include <signal.h>
#include <stdatomic.h>

#include "config/config.h"
#include "live/replay_body.h"
#include "live/replay_http.h"
#include "live/replay_record.h"
#include "run/trace_shelf.h"

struct replay_options {
    const struct config *config; /* its workload, its objectives, the seed of its arrivals */
    struct trace_shelf *traces;
    struct replay_server server;
    struct replay_body body; /* model NULL: the first model that the server lists */
    struct replay_vocabulary vocabulary;
    double ramp_s;     /* time in which the load grows from nothing to its full rate; 0: at once */
    uint64_t n_warmup; /* requests before the run, in no report */
    double wait_s;     /* longest wait for the server to be ready */
    double timeout_s;  /* longest time of a request */
    double stall_s;    /* time without a byte after which a request has failed */
    double metrics_s;  /* interval of reading the server's metrics; 0: never */
    double late_bound_s;
    size_t most_event_bytes, most_answer_bytes;
    bool keeps_chunks;   /* writes chunks.csv */
    const char *out_dir; /* exists */
    struct ifl_notes notes;
    const volatile sig_atomic_t *stop;
    atomic_ullong *n_ended, *n_requests; /* for a progress line, or NULL */
};

struct replay_result {
    struct ifl_summary summary; /* latencies count from the time that a request was sent */
    struct replay_client client;
    struct replay_spread ttft_due_s, e2e_due_s, connect_s;
    char model[256], version[128]; /* "" where the server does not say */
    uint64_t n_uncounted;          /* finished requests for which a chunk was counted as one
                                      token */
    uint64_t n_other_prompts;      /* requests for which the server counts another prompt length
                                      than was sent */
    char first_error[320];         /* error of the first request that failed; "" if none did */
    bool stopped;                  /* the run was stopped before its end */
};

/* Sends the workload and writes to out_dir, when the run is over,
 *
 *     requests.csv        a row a request, which `requests` reads as a recorded run
 *     quantiles.csv, summary.csv   as of a simulated run
 *     chunks.csv          request_id,chunk,time_s,tokens
 *     server_metrics.csv  asked_s,time_s,name,labels,value, of the server's /metrics
 *     bench.json          as vllm bench serve --save-detailed has it
 *     run.json            the server, the options, how late the client was
 *
 * Until then rows of the first, in order of their ends, the third and the fourth stand in files
 * with ".part" behind these names, which a kill or a full disk leaves with whole rows. A run that
 * `stop` ends has all files of what it has. IFL_E_DEVICE if the server cannot be reached. */
extern const char *const replay_files[]; /* all that it may write or remove; ends with NULL */
int replay_run(const struct replay_options *options, struct replay_result *result,
               struct ifl_error *error);
/* Prints the result as a table. */
void replay_print(const struct replay_result *result, FILE *out);

/* Reads what a server answers at /version, or "". At most 128 bytes. */
void replay_version(const struct replay_server *server, char text[128]);

#endif
