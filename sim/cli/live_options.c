#include "cli/live_options.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/interrupt.h"
#include "cli/out_dir.h"
#include "cli/progress.h"

const struct live_options live_options_default = {
    .endpoint = "completions",
    .n_ids = 8000,
    .event_kib = 1024,
    .answer_kib = 65536,
    .timeout_s = 3600,
    .stall_s = 600,
    .metrics_s = 1,
    .late_ms = 5,
};

static int fail(const char *command, const char *option, const char *found, const char *expected)
{
    fprintf(stderr, "inflight %s: %s %s: expected %s\n", command, option, found, expected);
    return -1;
}

static int check_words(const char *command, const struct live_options *values)
{
    const char *prompts = values->prompts;
    const bool chat = strcmp(values->endpoint, "chat") == 0;
    if (!chat && strcmp(values->endpoint, "completions") != 0)
        return fail(command, "--endpoint", values->endpoint, "completions or chat");
    if (prompts && strcmp(prompts, "ids") != 0 && strcmp(prompts, "words") != 0)
        return fail(command, "--prompts", prompts, "ids or words");
    if (prompts && values->tokenizer && strcmp(prompts, "ids") == 0)
        return fail(command, "--prompts", prompts, "words, since --tokenizer is of texts");
    if (prompts && chat && strcmp(prompts, "ids") == 0)
        return fail(command, "--prompts", prompts, "words, since --endpoint is chat");
    return 0;
}

static int check_numbers(const char *command, const struct live_options *values)
{
    const struct {
        const char *option;
        double value, least, most;
    } rows[] = {
        {"--vocab", (double)values->n_ids, 1, 1 << 30},
        {"--first-id", (double)values->first_id, 0, 1 << 30},
        {"--warmup", (double)values->n_warmup, 0, 1e6},
        {"--max-event", (double)values->event_kib, 1, 1 << 20},
        {"--max-answer", (double)values->answer_kib, 1, 1 << 30},
        {"--ramp", values->ramp_s, 0, 1e9},
        {"--wait", values->wait_s, 0, 1e9},
        {"--timeout", values->timeout_s, 1e-3, 1e9},
        {"--stall", values->stall_s, 1e-3, 1e9},
        {"--metrics", values->metrics_s, 0, 1e9},
        {"--late-bound", values->late_ms, 0, 1e9},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (!(rows[i].value >= rows[i].least && rows[i].value <= rows[i].most)) {
            fprintf(stderr, "inflight %s: %s %g: expected a number from %g to %g\n", command,
                    rows[i].option, rows[i].value, rows[i].least, rows[i].most);
            return -1;
        }
    return 0;
}

/* Clients of OpenAI's API name servers with and without the /v1 that all paths have. */
static int take_url(struct live *live, const char *command, const char *url)
{
    size_t n = strlen(url);
    while (n > 0 && url[n - 1] == '/')
        n--;
    if (n > 3 && strncmp(url + n - 3, "/v1", 3) == 0)
        n -= 3;
    if (n >= sizeof live->url)
        return fail(command, "--server", "URL", "at most 1023 characters");
    memcpy(live->url, url, n);
    live->url[n] = '\0';
    return 0;
}

static int take_key(struct live *live, const char *command, const struct live_options *values)
{
    if (!values->api_key_env)
        return 0;
    const char *key = getenv(values->api_key_env);
    if (!key || !*key || strpbrk(key, "\r\n"))
        return fail(command, "--api-key-env", values->api_key_env,
                    "an environment variable with a key in one line");
    live->options.server.key = key;
    return 0;
}

int live_init(struct live *live, const char *command, const char *url,
              const struct live_options *values, const struct config *config, const char *out_dir)
{
    struct ifl_error error;
    *live = (struct live){0};
    if (check_words(command, values) < 0 || check_numbers(command, values) < 0 ||
        take_url(live, command, url) < 0 || take_key(live, command, values) < 0)
        return -1;
    const char *key = live->options.server.key;
    const bool words =
        values->tokenizer || (values->prompts && strcmp(values->prompts, "words") == 0);
    live->options = (struct replay_options){
        .config = config,
        .traces = &live->traces,
        .server = {.url = live->url,
                   .key = key,
                   .headers = values->headers.of,
                   .n_headers = values->headers.n,
                   .ca_path = values->ca_path,
                   .insecure = values->insecure,
                   .proxy = values->proxy},
        .body = {.model = values->model,
                 .chat = strcmp(values->endpoint, "chat") == 0,
                 .prompts = words ? REPLAY_PROMPT_WORDS : REPLAY_PROMPT_IDS,
                 .words = &live->words,
                 .may_stop = values->may_stop,
                 .sends_priority = values->priority,
                 .extra = values->body.of,
                 .n_extra = values->body.n},
        .vocabulary = {(uint64_t)values->seed, (int32_t)values->first_id, (int32_t)values->n_ids},
        .ramp_s = values->ramp_s,
        .n_warmup = (uint64_t)values->n_warmup,
        .wait_s = values->wait_s,
        .timeout_s = values->timeout_s,
        .stall_s = values->stall_s,
        .metrics_s = values->metrics_s,
        .late_bound_s = values->late_ms * 1e-3,
        .most_event_bytes = (size_t)values->event_kib << 10,
        .most_answer_bytes = (size_t)values->answer_kib << 10,
        .keeps_chunks = !values->no_chunks,
        .out_dir = out_dir,
        .notes = {values->quiet ? NULL : cli_note, NULL},
        .stop = &interrupt_asked,
        .n_ended = &live->n_ended,
        .n_requests = &live->n_requests,
    };
    trace_shelf_init(&live->traces, live->options.notes);
    replay_words_common(&live->words);
    if ((!values->tokenizer || replay_words_choose(values->tokenizer, &live->words, &error) == 0) &&
        replay_server_check(&live->options.server, &error) == 0 &&
        replay_body_check(&live->options.body, &error) == 0)
        return 0;
    cli_fail(&error);
    live_finish(live);
    return -1;
}

void live_finish(struct live *live)
{
    trace_shelf_finish(&live->traces);
}

static void look(void *context, struct progress_state *state)
{
    struct live *live = context;
    const unsigned long long n = atomic_load(&live->n_requests),
                             n_ended = atomic_load(&live->n_ended);
    state->done_frac = n > 0 ? (double)n_ended / (double)n : (double)NAN;
    snprintf(state->text, sizeof state->text, "%llu of %llu requests", n_ended, n);
}

/* What a table does not show. */
static void say_odd(const struct replay_result *result)
{
    char text[640];
    const struct ifl_summary *s = &result->summary;
    if (result->n_other_prompts > 0) {
        snprintf(text, sizeof text,
                 "the server counts another number of prompt tokens than was sent in %llu of %llu "
                 "requests (prompt_tokens_server in requests.csv)",
                 (unsigned long long)result->n_other_prompts, (unsigned long long)s->n_finished);
        cli_note(NULL, text);
    }
    if (result->n_uncounted > 0) {
        snprintf(text, sizeof text,
                 "the server does not count tokens in %llu of %llu requests: a chunk with text "
                 "counts for one",
                 (unsigned long long)result->n_uncounted, (unsigned long long)s->n_finished);
        cli_note(NULL, text);
    }
    const unsigned long long n_wrong = s->n_failed + s->n_rejected + s->n_shed;
    if (*result->first_error && s->n_finished > 0) {
        snprintf(text, sizeof text, "%llu of %llu requests had an error, the first: %s", n_wrong,
                 (unsigned long long)s->n_requests, result->first_error);
        cli_note(NULL, text);
    }
}

int live_replay(struct live *live, const struct live_options *values, struct replay_result *result,
                struct ifl_error *error)
{
    struct out_dir out;
    int rc = out_dir_make(&out, live->options.out_dir, error);
    if (rc < 0)
        return rc;
    struct progress progress = {.look = look, .context = live, .quiet = values->quiet};
    progress_start(&progress);
    rc = replay_run(&live->options, result, error);
    progress_stop(&progress);
    out_dir_tidy(&out);
    if (rc == 0 && result->summary.n_finished == 0 && !result->stopped)
        rc = ifl_fail(error, IFL_E_DEVICE, "%s: none of %llu requests finished; %s", live->url,
                      (unsigned long long)result->summary.n_requests,
                      *result->first_error ? result->first_error : "none had an error");
    if (rc == 0 && !values->quiet)
        say_odd(result);
    if (rc == 0 && result->stopped)
        rc = ifl_fail(error, IFL_E_INTERRUPTED, "interrupted; %s has the %llu requests before",
                      live->options.out_dir, (unsigned long long)result->summary.n_requests);
    return rc;
}
