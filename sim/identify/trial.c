#include "identify/trial.h"

#include <math.h>
#include <string.h>

#include "inflight/random.h"

int trial_open(struct trial *trial, size_t n, struct ifl_error *error)
{
    bool room = true;
    *trial = (struct trial){.n = n};
    for (int k = 0; k < N_LATENCIES; k++)
        room = (trial->of[k] = malloc((n + 1) * sizeof(double))) && room;
    trial->wait_s = malloc((n + 1) * sizeof *trial->wait_s);
    trial->cached_tokens = malloc((n + 1) * sizeof *trial->cached_tokens);
    return room && trial->wait_s && trial->cached_tokens ? 0 : ifl_fail_nomem(error);
}

void trial_close(struct trial *trial)
{
    for (int k = 0; k < N_LATENCIES; k++)
        free(trial->of[k]);
    free(trial->wait_s);
    free(trial->cached_tokens);
    *trial = (struct trial){0};
}

struct flown {
    const struct recording *recording;
    const struct config *config;
    const double *value;
    struct trial *trial;
    size_t n_awaited; /* the recording's first requests; the flight ends with the last of them */
    size_t n_left;    /* of them, in flight or to come */
    const volatile sig_atomic_t *asked_to_stop; /* or NULL */
    volatile sig_atomic_t stop;
};

static void change(void *context, struct machine *machine)
{
    const struct flown *flown = context;
    parameters_change(flown->value, flown->config, machine);
}

static double front_s(const double value[], const struct recording *r, size_t i)
{
    return fmax(0, value[FRONT_REQUEST]) +
           fmax(0, value[FRONT_PROMPT_TOKEN]) * recording_prompt(r, i);
}

/* What a front end below 0 would take off the latency. */
static double below_s(const double value[], const struct recording *r, size_t i)
{
    return fmin(0, value[FRONT_REQUEST]) +
           fmin(0, value[FRONT_PROMPT_TOKEN]) * recording_prompt(r, i);
}

/* Request i has ended. */
static void count(struct flown *flown, size_t i)
{
    flown->n_left -= i < flown->n_awaited;
    flown->stop = flown->n_left == 0 || (flown->asked_to_stop && *flown->asked_to_stop);
}

static void hear(void *context, const struct ifl_request_record *record)
{
    struct flown *flown = context;
    const size_t i = (size_t)record->request_id;
    struct trial *trial = flown->trial;
    count(flown, i);
    if (i >= trial->n || record->status != IFL_FINISHED)
        return;
    const double below = below_s(flown->value, flown->recording, i);
    const double first_s = ifl_s_from_ns(record->first_token_ns - record->arrival_ns);
    const double last_s = ifl_s_from_ns(record->finish_ns - record->arrival_ns);
    trial->of[TTFT][i] = below + first_s;
    trial->of[E2E][i] = below + last_s;
    if (record->output_tokens > 1)
        trial->of[TPOT][i] = (last_s - first_s) / (record->output_tokens - 1);
    trial->cached_tokens[i] = record->cached_tokens;
    trial->wait_s[i] = ifl_s_from_ns(record->first_scheduled_ns - record->arrival_ns) -
                       front_s(flown->value, flown->recording, i);
}

static int by_time(const void *left, const void *right)
{
    const int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

/* The shift is the same for all values of the parameters. Requests stay in their order, which the
 * stamps say however late each is: of requests that came at once it decides about their waits. */
static int arrive(const struct recording *r, unsigned shift, struct ifl_trace *trace,
                  struct ifl_error *error)
{
    for (size_t i = 0; shift && i < r->n; i++)
        trace->arrival_ns[r->n_before + i] +=
            ifl_ns_from_s(ifl_uniform(ifl_draw(0, IFL_DRAW_TRIAL, i, shift)) * r->tpot_s);
    qsort(trace->arrival_ns, trace->n, sizeof *trace->arrival_ns, by_time);
    return ifl_trace_sort(trace, NULL, error);
}

/* Of a request that is not served, no latency is known. */
static void forget(struct trial *trial)
{
    for (size_t i = 0; i < trial->n; i++) {
        for (int k = 0; k < N_LATENCIES; k++)
            trial->of[k][i] = (double)NAN;
        trial->cached_tokens[i] = 0;
        trial->wait_s[i] = INFINITY;
    }
}

/* n_awaited: of struct flown; SIZE_MAX: the flight goes on to its end. */
static int fly(const struct trial_setting *setting, const struct recording *recording,
               const double value[N_PARAMETERS], unsigned shift, size_t n_awaited,
               struct trial *trial, struct ifl_error *error)
{
    struct config config = *setting->config;
    struct flown flown = {.recording = recording,
                          .config = &config,
                          .value = value,
                          .trial = trial,
                          .n_awaited = n_awaited,
                          .n_left = n_awaited,
                          .asked_to_stop = setting->stop};
    struct ifl_trace trace = {0};
    struct ifl_error ended = {0};
    struct point_result result;
    const struct point_options options = {
        .config = &config,
        .trial = {.trace = &trace, .change = change, .context = &flown, .noise = setting->noise},
        .reports = {.on_request = hear, .on_request_context = &flown},
        .traces = setting->traces,
        .profiles = setting->profiles,
        .stop = &flown.stop,
        .n_ended = setting->n_ended,
    };
    config.workload.arrivals = (struct ifl_arrivals){.process = IFL_ARRIVE_TRACE, .speedup = 1};
    config.serving.kv.num_blocks = (int32_t)lround(value[BLOCKS]);
    config.steady_state = false;
    forget(trial);
    int rc = ifl_trace_cut(&recording->flown, &(struct ifl_trace_window){0}, recording->path, NULL,
                           &trace, &ended);
    if (rc == 0)
        rc = arrive(recording, shift, &trace, &ended);
    if (rc == 0)
        rc = point_fly(&options, &result, &ended);
    if (setting->n_flown)
        atomic_fetch_add(setting->n_flown, 1);
    ifl_trace_free(&trace);
    if (rc == 0 || (rc == IFL_E_INTERRUPTED && flown.n_left == 0))
        return 0;
    *error = ended; /* only now: what the caller has noted in it stays */
    return rc;
}

int trial_fly(const struct trial_setting *setting, const struct recording *recording,
              const double value[N_PARAMETERS], unsigned shift, struct trial *trial,
              struct ifl_error *error)
{
    return fly(setting, recording, value, shift, SIZE_MAX, trial, error);
}

int trial_fly_fitted(const struct trial_setting *setting, const struct recording *recording,
                     const double value[N_PARAMETERS], unsigned shift, struct trial *trial,
                     struct ifl_error *error)
{
    return fly(setting, recording, value, shift, recording->n_fit, trial, error);
}
