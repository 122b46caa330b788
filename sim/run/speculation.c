#include "run/speculation.h"

#include <stdlib.h>
#include <string.h>

#include "cost/draft.h"

/* ---- rates ---- */

/* "0.7", for every place, or "0.85,0.6,0.3". Returns what stands behind, NULL if it is no list. */
static const char *read_rates(const char *text, struct acceptance *accepts)
{
    char *end;
    *accepts = (struct acceptance){0};
    for (;;) {
        const double rate = strtod(text, &end);
        if (end == text || !(rate >= 0 && rate <= 1) || accepts->depth == RAGGED_MAX_DRAFTS)
            return NULL;
        accepts->below[accepts->depth++] = acceptance_below(rate);
        if (*end != ',')
            break;
        text = end + 1;
    }
    if (accepts->depth > 1)
        return end;
    for (int32_t i = 1; i < RAGGED_MAX_DRAFTS; i++)
        accepts->below[i] = accepts->below[0];
    accepts->depth = RAGGED_MAX_DRAFTS;
    return end;
}

static int fail_rates(const char *key, const char *text, struct ifl_error *error)
{
    return ifl_fail(error, IFL_E_INPUT,
                    "serving.speculation.%s has '%.80s', expected %sone rate from 0 to 1, or up to "
                    "%d with commas between them",
                    key, text,
                    strcmp(key, "clients") == 0 ? "NAME=RATES;NAME=RATES, where RATES is " : "",
                    RAGGED_MAX_DRAFTS);
}

/* Calls `hear`, unless it is NULL, for each client's rates. */
static int read_clients(const char *text, struct ifl_error *error, void *context,
                        int (*hear)(void *context, const char *name, size_t n_chars,
                                    const struct acceptance *, struct ifl_error *))
{
    struct acceptance accepts;
    while (*text) {
        const char *sign = strchr(text, '=');
        const char *end = sign && sign > text ? read_rates(sign + 1, &accepts) : NULL;
        if (!end || (*end && *end != ';'))
            return fail_rates("clients", text, error);
        const int rc = hear ? hear(context, text, (size_t)(sign - text), &accepts, error) : 0;
        if (rc < 0)
            return rc;
        text = *end ? end + 1 : end;
    }
    return 0;
}

/* Fills *all; the clients' rates are only looked at. */
static int check_texts(const struct speculation_config *config, struct acceptance *all,
                       struct ifl_error *error)
{
    const char *end = read_rates(config->acceptance, all);
    if (!end || *end)
        return fail_rates("acceptance", config->acceptance, error);
    return read_clients(config->clients, error, NULL, NULL);
}

/* ---- rates of clients ---- */

struct reading {
    struct speculation *of;
    const struct ifl_trace *trace;
    size_t n;
};

static int hear_client(void *context, const char *name, size_t n_chars,
                       const struct acceptance *accepts, struct ifl_error *error)
{
    struct reading *reading = context;
    const struct ifl_trace *trace = reading->trace;
    uint32_t i = 0;
    while (i < trace->n_clients &&
           !(trace->client_names && strlen(trace->client_names[i]) == n_chars &&
             memcmp(trace->client_names[i], name, n_chars) == 0))
        i++;
    if (i == trace->n_clients || reading->n == SPECULATION_MAX_CLIENTS)
        return ifl_fail(
            error, IFL_E_INPUT,
            "serving.speculation.clients names %.*s, expected at most %d clients of the "
            "trace",
            (int)n_chars, name, SPECULATION_MAX_CLIENTS);
    reading->of->own[reading->n] = *accepts;
    reading->of->of_client[i] = &reading->of->own[reading->n++];
    return 0;
}

static int check_trace(const struct ifl_trace *trace, struct ifl_error *error)
{
    for (size_t i = 0; trace->accept_percent && i < trace->n; i++)
        if (trace->accept_percent[i] > 100)
            return ifl_fail(
                error, IFL_E_INPUT,
                "row %zu of the trace has an accept_percent of %d, expected at most 100", i + 1,
                trace->accept_percent[i]);
    return 0;
}

int speculation_create(struct speculation *speculation, const struct config *config,
                       const struct ifl_trace *trace, struct ifl_error *error)
{
    const struct speculation_config *keys = &config->serving.speculation;
    struct reading reading = {speculation, trace, 0};
    *speculation = (struct speculation){0};
    if (!config_speculates(config))
        return 0;
    if (check_texts(keys, &speculation->all, error) < 0 || check_trace(trace, error) < 0)
        return error->code;
    for (int32_t i = 0; i <= 100; i++) {
        struct acceptance *accepts = &speculation->of_percent[i];
        accepts->depth = speculation->all.depth;
        for (int32_t k = 0; k < RAGGED_MAX_DRAFTS; k++)
            accepts->below[k] = acceptance_below(i / 100.0);
    }
    speculation->of_client = calloc(trace->n_clients + (size_t)1, sizeof *speculation->of_client);
    if (!speculation->of_client)
        return ifl_fail_nomem(error);
    return read_clients(keys->clients, error, &reading, hear_client);
}

void speculation_destroy(struct speculation *speculation)
{
    free(speculation->of_client);
}

struct ragged_options speculation_options(const struct speculation *speculation,
                                          const struct config *config)
{
    const struct speculation_config *keys = &config->serving.speculation;
    const int32_t most = config_max_drafts(config);
    const int32_t usual = keys->proposer == PROPOSER_LOOKUP ? 0 : most;
    return (struct ragged_options){
        .seed = config->workload.arrivals.seed,
        .lookahead_tokens = keys->lookahead_tokens < 0 ? usual : keys->lookahead_tokens,
        .prompts_look_ahead = keys->prompts_look_ahead,
        .accepts = &speculation->all,
        .of_client = speculation->of_client,
        .of_percent = speculation->of_percent,
    };
}

/* ---- what came of it ---- */

void speculation_add(const struct replica *replica, struct ifl_speculation_record *to)
{
    const struct ragged_sums sums = ragged_sums(&replica->here.cohort.ragged);
    to->n_steps += sums.n_steps;
    to->n_drafted += sums.n_drafted;
    to->n_emitted += sums.n_emitted;
    for (int32_t n = 1; n <= RAGGED_MAX_DRAFTS; n++) {
        to->n_held += n * sums.n_held[n];
        for (int32_t place = 1; place <= n; place++) {
            to->of[place - 1].n_guessed += sums.n_with[n];
            to->of[place - 1].n_held += sums.n_held[n];
        }
    }
}
