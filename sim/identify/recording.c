#include "identify/recording.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "inflight/minmax.h"

const char *const latency_names[N_LATENCIES] = {"TTFT", "TPOT", "end to end"};

/* ---- is it a run that can be fitted? ---- */

/* A stamp that lies this far before the one above it is not one of a few requests that were sent
 * at once. */
#define JUMP_NS ((int64_t)10 * IFL_NS_PER_S)

/* In a file in the order of arrival a single stamp that goes back is a clock that was set. A file
 * in the order of ends has many. */
static int check_order(const struct recording *recording, struct ifl_error *error)
{
    const struct ifl_trace *trace = &recording->trace;
    size_t n_back = 0, at = 0;
    for (size_t i = 1; i < trace->n; i++)
        if (trace->arrival_ns[i] < trace->arrival_ns[i - 1] - JUMP_NS)
            at = n_back++ == 0 ? i : at;
    if (n_back == 0 || n_back > trace->n / 50 + 1)
        return 0;
    return ifl_fail_at(error, recording->path, 0, 0,
                       "request %zu arrives %.6g s before request %zu, while the others arrive in "
                       "order: a clock that jumps, expected stamps of one clock",
                       at + 1, ifl_s_from_ns(trace->arrival_ns[at - 1] - trace->arrival_ns[at]),
                       at);
}

/* Rows in the order of arrival. Pauses that are a hundred times as long as the others, ten minutes
 * at the least, are no load's: what ran before them may still run behind them. */
static int check_pauses(const struct recording *recording, struct ifl_error *error)
{
    const struct ifl_trace *trace = &recording->trace;
    const int64_t least_ns = 600 * IFL_NS_PER_S;
    size_t n_long = 0, at = 0;
    int64_t rest_ns = 0;
    for (size_t i = 1; i < trace->n; i++) {
        const int64_t pause_ns = trace->arrival_ns[i] - trace->arrival_ns[i - 1];
        if (pause_ns >= least_ns)
            at = n_long++ == 0 ? i : at;
        else
            rest_ns += pause_ns;
    }
    if (n_long == 0 || n_long > trace->n / 50 + 1)
        return 0;
    const int64_t pause_ns = trace->arrival_ns[at] - trace->arrival_ns[at - 1];
    const int64_t mean_ns = rest_ns / (int64_t)(trace->n - n_long);
    if (pause_ns / 100 < mean_ns)
        return 0;
    return ifl_fail_at(error, recording->path, 0, 0,
                       "no request arrives for %.6g s behind request %zu, and one each %.3g s "
                       "otherwise: a clock that jumps, or two runs, expected stamps of one run",
                       ifl_s_from_ns(pause_ns), at, ifl_s_from_ns(mean_ns));
}

/* The same of a wait for the first token, or for the next ones, in the middle of an answer. */
static int check_waits(const struct recording *recording, struct ifl_error *error)
{
    static const char *const what[] = {[TTFT] = "first token", [TPOT] = "next token, in the mean"};
    const double least_s = 600, most = 100;
    for (enum latency l = TTFT; l <= TPOT; l++) {
        const double usual_s = l == TTFT ? recording->ttft_s : recording->tpot_s;
        for (size_t i = 0; i < recording->n; i++) {
            const double tokens = l == TTFT ? 1 : recording->trace.n_output[i] - 1;
            const double wait_s = recording->of[l][i];
            if (wait_s * tokens >= least_s && wait_s > most * usual_s)
                return ifl_fail_at(error, recording->path, 0, 0,
                                   "a request waits %.6g s for its %s, and the median one %.3g s: "
                                   "a clock that jumps, expected stamps of one clock",
                                   wait_s, what[l], usual_s);
        }
    }
    return 0;
}

static int check_outcome(const struct recording *recording, size_t i, struct ifl_error *error)
{
    const struct ifl_trace *trace = &recording->trace;
    const struct ifl_outcome *o = &trace->outcome[i];
    if (o->e2e_ns == IFL_NEVER || o->ttft_ns == IFL_NEVER)
        return ifl_fail_at(error, recording->path, 0, 0,
                           "request %zu has no %s: a run with failures, expected one in which all "
                           "requests finish",
                           i + 1, o->ttft_ns == IFL_NEVER ? "first token" : "end");
    if (o->ttft_ns <= 0 || o->e2e_ns < o->ttft_ns ||
        (trace->n_output[i] > 1 && o->e2e_ns == o->ttft_ns))
        return ifl_fail_at(error, recording->path, 0, 0,
                           "request %zu has its first token %.6g s and its last %.6g s after its "
                           "arrival: a clock that jumps, expected times that ascend",
                           i + 1, ifl_s_from_ns(o->ttft_ns), ifl_s_from_ns(o->e2e_ns));
    return 0;
}

static int check(const struct recording *recording, struct ifl_error *error)
{
    const struct ifl_trace *trace = &recording->trace;
    if (!trace->outcome)
        return ifl_fail_at(error, recording->path, 0, 0,
                           "a trace without measured latencies, expected a recorded run");
    if (!trace->has_stamps)
        return ifl_fail_at(error, recording->path, 0, 0,
                           "no request says when it arrived, expected a recorded run with stamps");
    if (trace->n_skipped > 0)
        return ifl_fail_at(
            error, recording->path, 0, 0,
            "%zu of %zu requests have no answer: a run with failures, expected one in "
            "which all requests finish",
            trace->n_skipped, trace->n + trace->n_skipped);
    for (size_t i = 0; i < trace->n; i++)
        if (check_outcome(recording, i, error) < 0)
            return error->code;
    return check_order(recording, error);
}

/* ---- the requests that are flown ---- */

/* The same answers in rows first.. of `longer`. */
static bool ends_with(const struct ifl_trace *longer, size_t first, const struct ifl_trace *run)
{
    return longer->n == first + run->n &&
           memcmp(longer->n_output + first, run->n_output, run->n * sizeof *run->n_output) == 0;
}

static bool same_requests(const struct ifl_trace *a, const struct ifl_trace *b)
{
    return ends_with(a, 0, b);
}

/* Answers alone, which may all be of one length, do not say where the run begins. */
static bool same_ids(const struct ifl_trace *longer, size_t first, const struct ifl_trace *run)
{
    size_t i = 0;
    while (i < run->n && ifl_trace_id(longer, first + i) == ifl_trace_id(run, i))
        i++;
    return i == run->n;
}

static bool describes(const struct ifl_trace *trace, const struct ifl_trace *run)
{
    const size_t first = trace->n > run->n ? trace->n - run->n : 0;
    return ends_with(trace, first, run) && (first == 0 || same_ids(trace, first, run));
}

bool recording_same(const struct recording *a, const struct recording *b)
{
    const size_t n_bytes = a->n * sizeof *a->of[E2E];
    return same_requests(&a->trace, &b->trace) &&
           memcmp(a->trace.arrival_ns, b->trace.arrival_ns, a->n * sizeof *a->trace.arrival_ns) ==
               0 &&
           memcmp(a->of[E2E], b->of[E2E], n_bytes) == 0;
}

/* Row n_before + i is request i of the run, at its recorded stamp: no turn waits for another. What
 * was sent before keeps its distance from the first of them. */
static int number_rows(struct recording *recording, struct ifl_error *error)
{
    struct ifl_trace *flown = &recording->flown;
    const size_t before = recording->n_before = flown->n - recording->n;
    const int64_t *recorded_ns = recording->trace.arrival_ns;
    const int64_t begins_ns = before ? flown->arrival_ns[before] - recorded_ns[0] : 0;
    if (!flown->request_id)
        flown->request_id = malloc((flown->n + 1) * sizeof *flown->request_id);
    if (!flown->request_id)
        return ifl_fail_nomem(error);
    for (size_t i = 0; i < before; i++)
        flown->request_id[i] = recording->n + i;
    for (size_t i = 0; i < recording->n; i++) {
        flown->request_id[before + i] = i;
        flown->arrival_ns[before + i] = begins_ns + recorded_ns[i];
    }
    free(flown->think_ns);
    flown->think_ns = NULL;
    return 0;
}

/* 1: the trace has the same requests, and is moved to the recording; 0: it has others. */
static int try_requests(struct recording *recording, const char *path, const char *format,
                        const struct recording_options *options, struct ifl_error *error)
{
    const struct ifl_trace_file file = {path, format, options->config->workload.max_record_mib};
    int rc = ifl_trace_read(&file, NULL, &recording->flown, error);
    if (rc == 0)
        rc = ifl_trace_sort(&recording->flown, NULL, error);
    if (rc == 0 && describes(&recording->flown, &recording->trace))
        return 1;
    ifl_trace_free(&recording->flown);
    return rc;
}

static void note_before(const struct recording *recording, const struct ifl_notes *notes)
{
    char text[400];
    if (recording->n_before == 0 || !notes || !notes->say)
        return;
    snprintf(text, sizeof text,
             "%s: %zu requests that were sent before the run are flown, and not judged",
             recording->path, recording->n_before);
    notes->say(notes->context, text);
}

static int describe(struct recording *recording, const struct recording_options *options,
                    struct ifl_error *error)
{
    const struct workload_config *w = &options->config->workload;
    const struct ifl_trace_window all = {0};
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < options->n_requests; i++) {
        rc = try_requests(recording, options->requests[i], "auto", options, error);
        if (rc == 1 && options->used)
            options->used[i] = true;
    }
    if (rc == 0 && *w->trace)
        rc = try_requests(recording, w->trace, w->format, options, error);
    if (rc == 0) {
        rc = ifl_trace_cut(&recording->trace, &all, recording->path, options->notes,
                           &recording->flown, error);
        free(recording->flown.outcome);
        recording->flown.outcome = NULL;
    }
    if (rc >= 0)
        rc = number_rows(recording, error);
    if (rc == 0)
        note_before(recording, options->notes);
    return rc;
}

/* ---- what the recording shows by itself ---- */

struct change {
    int64_t at_ns;
    double rate; /* blocks a second from then on */
    double jump; /* blocks at once */
};

static int by_time(const void *left, const void *right)
{
    const struct change *a = left, *b = right;
    return a->at_ns < b->at_ns ? -1 : a->at_ns > b->at_ns;
}

/* A request takes its prompt's blocks at its first token, grows evenly to its last, and gives all
 * back. Returns how many changes these are, in the order of time. */
static size_t list_changes(const struct recording *recording, const int32_t cached_tokens[],
                           int32_t block_tokens, struct change *change)
{
    const struct ifl_trace *t = &recording->trace;
    size_t n = 0;
    for (size_t i = 0; i < recording->n_fit; i++) {
        const int64_t from = t->arrival_ns[i] + t->outcome[i].ttft_ns;
        const int64_t to = t->arrival_ns[i] + t->outcome[i].e2e_ns;
        const double own = (double)t->n_prompt[i] - cached_tokens[i];
        const double prompt = ceil((own + 1) / block_tokens);
        const double end = ceil((own + t->n_output[i]) / block_tokens);
        const double grows = to > from ? (end - prompt) / ifl_s_from_ns(to - from) : 0;
        change[n++] = (struct change){from, grows, prompt};
        change[n++] = (struct change){to, -grows, to > from ? -end : -prompt};
    }
    qsort(change, n, sizeof *change, by_time);
    return n;
}

int recording_peak_blocks(const struct recording *recording, const int32_t cached_tokens[],
                          int32_t block_tokens, double *blocks, struct ifl_error *error)
{
    struct change *change = malloc((2 * recording->n_fit + 1) * sizeof *change);
    double peak = 0, held = 0, rate = 0;
    if (!change)
        return ifl_fail_nomem(error);
    const size_t n = list_changes(recording, cached_tokens, block_tokens, change);
    for (size_t i = 0; i < n; i++) {
        held += i > 0 ? rate * ifl_s_from_ns(change[i].at_ns - change[i - 1].at_ns) : 0;
        peak = fmax(peak, held);
        held += change[i].jump;
        rate += change[i].rate;
        peak = fmax(peak, held);
    }
    free(change);
    *blocks = peak;
    return 0;
}

static double median_of(const double *x, size_t n, double *sorted)
{
    size_t m = 0;
    for (size_t i = 0; i < n; i++)
        if (!isnan(x[i]))
            sorted[m++] = x[i];
    return m ? gsl_stats_median(sorted, 1, m) : 0;
}

static int measure(struct recording *recording, struct ifl_error *error)
{
    const struct ifl_trace *t = &recording->trace;
    int64_t last_ns = 1;
    double busy_s = 0;
    for (int k = 0; k < N_LATENCIES; k++)
        if (!(recording->of[k] = calloc(t->n + 1, sizeof(double))))
            return ifl_fail_nomem(error);
    for (size_t i = 0; i < t->n; i++) {
        const struct ifl_outcome *o = &t->outcome[i];
        const double decode_s = ifl_s_from_ns(o->e2e_ns - o->ttft_ns);
        recording->of[TTFT][i] = ifl_s_from_ns(o->ttft_ns);
        recording->of[E2E][i] = ifl_s_from_ns(o->e2e_ns);
        recording->of[TPOT][i] = t->n_output[i] > 1 ? decode_s / (t->n_output[i] - 1) : (double)NAN;
        if (i >= recording->n_fit)
            continue;
        busy_s += decode_s;
        recording->prompt += (double)t->n_prompt[i] / (double)recording->n_fit;
        last_ns = ifl_max(last_ns, t->arrival_ns[i] + o->e2e_ns);
    }
    double *sorted = malloc((recording->n_fit + 1) * sizeof *sorted);
    if (!sorted)
        return ifl_fail_nomem(error);
    recording->tpot_s = median_of(recording->of[TPOT], recording->n_fit, sorted);
    recording->ttft_s = median_of(recording->of[TTFT], recording->n_fit, sorted);
    recording->running = fmax(1, busy_s / ifl_s_from_ns(last_ns));
    free(sorted);
    return 0;
}

int recording_take(struct recording *recording, const char *path, struct ifl_trace *trace,
                   const struct recording_options *options, struct ifl_error *error)
{
    *recording = (struct recording){.path = path, .trace = *trace, .n = trace->n};
    *trace = (struct ifl_trace){0};
    recording->n_fit = (size_t)ceil(options->fit_frac * (double)recording->n);
    int rc = check(recording, error);
    if (rc == 0)
        rc = ifl_trace_sort(&recording->trace, options->notes, error);
    if (rc == 0)
        rc = check_pauses(recording, error);
    if (rc == 0)
        rc = describe(recording, options, error);
    if (rc == 0)
        rc = measure(recording, error);
    if (rc == 0 && recording->tpot_s <= 0)
        rc = ifl_fail_at(error, path, 0, 0,
                         "no request has two tokens, expected answers that show a time per token");
    if (rc == 0)
        rc = check_waits(recording, error);
    if (rc == 0 && recording->n_fit < RECORDING_LEAST)
        rc = ifl_fail_at(error, path, 0, 0,
                         "%zu requests to fit, of %zu, expected at least %d: they say too little",
                         recording->n_fit, recording->n, RECORDING_LEAST);
    return rc;
}

int recording_read(struct recording *recording, const char *path,
                   const struct recording_options *options, struct ifl_error *error)
{
    const struct ifl_trace_file file = {path, options->format,
                                        options->config->workload.max_record_mib};
    struct ifl_trace trace;
    *recording = (struct recording){.path = path};
    const int rc = ifl_trace_read(&file, NULL, &trace, error);
    return rc < 0 ? rc : recording_take(recording, path, &trace, options, error);
}

void recording_free(struct recording *recording)
{
    for (int k = 0; k < N_LATENCIES; k++)
        free(recording->of[k]);
    ifl_trace_free(&recording->trace);
    ifl_trace_free(&recording->flown);
    *recording = (struct recording){0};
}
