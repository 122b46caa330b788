/* A recorded run as identification uses it: what was measured, and the requests that are simulated.
 */
#ifndef SIM_IDENTIFY_RECORDING_H
#define SIM_IDENTIFY_RECORDING_H

#include "inflight/trace.h"

#include "config/config.h"

enum latency { TTFT, TPOT, E2E, N_LATENCIES };
extern const char *const latency_names[N_LATENCIES];

struct recording {
    const char *path;
    struct ifl_trace trace; /* with outcomes, in order of arrival */
    /* The requests sent before the run, then those of the run, with what is known of their prompts.
     * The former are simulated, but neither fitted nor judged. */
    struct ifl_trace flown;
    size_t n, n_before;
    size_t n_fit;            /* the first of them are fitted, the others judged */
    double *of[N_LATENCIES]; /* [n] s; NaN: a request of one token has no TPOT */
    /* of the fitted requests alone */
    double tpot_s, ttft_s;  /* medians */
    double running, prompt; /* mean requests between first and last token; mean prompt, tokens */
};

/* Fewest requests that are fitted. */
enum { RECORDING_LEAST = 30 };

struct recording_options {
    const struct config *config;
    const char *format; /* of the recording */
    double fit_frac;    /* of the requests, the first ones */
    /* Traces that may have more information about the requests, such as which prompts begin alike:
     * the first trace with the same answers is simulated. It may begin with further requests, if
     * those behind them have the run's request_id. The configuration's own trace is one of these
     * traces. */
    const char *const *requests;
    size_t n_requests;
    bool *used; /* [n_requests] set where a recording has taken it; NULL: not asked */
    const struct ifl_notes *notes;
};

/* Reads the run, checks that a fit to it is meaningful, and adds what else is known about its
 * requests. The caller must call recording_free, after an error, too. */
int recording_read(struct recording *recording, const char *path,
                   const struct recording_options *options, struct ifl_error *error);
/* As recording_read, from a trace in memory, which is moved into the recording. */
int recording_take(struct recording *recording, const char *path, struct ifl_trace *trace,
                   const struct recording_options *options, struct ifl_error *error);
/* Returns the prompt tokens of request i of the run, as simulated. */
static inline int32_t recording_prompt(const struct recording *recording, size_t i)
{
    return recording->flown.n_prompt[recording->n_before + i];
}
/* True if both have the same arrivals, answers and latencies. */
bool recording_same(const struct recording *a, const struct recording *b);
/* The most blocks that fitted requests held at a time between first and last token, what they found
 * in a cache left out. */
int recording_peak_blocks(const struct recording *recording, const int32_t cached_tokens[],
                          int32_t block_tokens, double *blocks, struct ifl_error *error);
void recording_free(struct recording *recording);

#endif
