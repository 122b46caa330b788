/* The options of commands that send requests to a server: `replay`, `validate --live`. */
#ifndef SIM_CLI_LIVE_OPTIONS_H
#define SIM_CLI_LIVE_OPTIONS_H

#include <stdatomic.h>

#include "cli/options.h"
#include "live/replay.h"

struct live_options { /* the values of the options */
    const char *model, *endpoint, *prompts, *api_key_env, *ca_path, *proxy, *tokenizer;
    struct text_list headers, body;
    bool insecure, may_stop, priority, no_chunks, quiet;
    long long n_ids, first_id, seed, n_warmup, event_kib, answer_kib;
    double ramp_s, wait_s, timeout_s, stall_s, metrics_s, late_ms;
};

/* The defaults. */
extern const struct live_options live_options_default;

/* Rows for the table of a command that reads its options into a struct with a member `live`. */
#define LIVE_OPTION(of, name, alias, kind, member, ...)                                            \
    {                                                                                              \
        name, alias, OPTION_##kind, offsetof(of, live.member), __VA_ARGS__                         \
    }
#define LIVE_OPTIONS(of)                                                                           \
    LIVE_OPTION(of, "--model", NULL, TEXT, model, "NAME",                                          \
                "name of the model at the server (the first that it serves)", COMPLETE_NOTHING),   \
        LIVE_OPTION(of, "--endpoint", NULL, TEXT, endpoint, "completions|chat",                    \
                    "API that is called (completions)", COMPLETE_NOTHING),                         \
        LIVE_OPTION(of, "--prompts", NULL, TEXT, prompts, "ids|words",                             \
                    "token ids, or text with about as many tokens (ids; chat: words)",             \
                    COMPLETE_NOTHING),                                                             \
        LIVE_OPTION(of, "--tokenizer", NULL, TEXT, tokenizer, "FILE",                              \
                    "the model's tokenizer: send text with exactly as many tokens",                \
                    COMPLETE_FILE),                                                                \
        LIVE_OPTION(of, "--vocab", NULL, COUNT, n_ids, "N",                                        \
                    "number of different ids in prompts (8000)", COMPLETE_NOTHING),                \
        LIVE_OPTION(of, "--first-id", NULL, COUNT, first_id, "N", "lowest id in prompts (0)",      \
                    COMPLETE_NOTHING),                                                             \
        LIVE_OPTION(of, "--seed", NULL, COUNT, seed, "N", "seed of the prompts (0)",               \
                    COMPLETE_NOTHING),                                                             \
        LIVE_OPTION(of, "--may-stop", NULL, FLAG, may_stop, NULL,                                  \
                    "let answers end early: send no ignore_eos and min_tokens", COMPLETE_NOTHING), \
        LIVE_OPTION(of, "--priority", NULL, FLAG, priority, NULL,                                  \
                    "send the priorities of the trace", COMPLETE_NOTHING),                         \
        LIVE_OPTION(of, "--body", NULL, LIST, body, "KEY=VALUE",                                   \
                    "add a key, JSON or a word, to each request", COMPLETE_NOTHING),               \
        LIVE_OPTION(of, "--header", NULL, LIST, headers, "NAME:VALUE", "send a header",            \
                    COMPLETE_NOTHING),                                                             \
        LIVE_OPTION(of, "--api-key-env", NULL, TEXT, api_key_env, "NAME",                          \
                    "environment variable with the API key", COMPLETE_NOTHING),                    \
        LIVE_OPTION(of, "--ca", NULL, TEXT, ca_path, "FILE.pem",                                   \
                    "trust these certificates (the system's)", COMPLETE_FILE),                     \
        LIVE_OPTION(of, "--insecure", NULL, FLAG, insecure, NULL, "trust any certificate",         \
                    COMPLETE_NOTHING),                                                             \
        LIVE_OPTION(of, "--proxy", NULL, TEXT, proxy, "URL",                                       \
                    "use this proxy (none, whatever the environment says)", COMPLETE_NOTHING),     \
        LIVE_OPTION(of, "--warmup", NULL, COUNT, n_warmup, "N",                                    \
                    "requests before the run, which are not reported (0)", COMPLETE_NOTHING),      \
        LIVE_OPTION(of, "--wait", NULL, REAL, wait_s, "S",                                         \
                    "longest wait for the server to be ready (0)", COMPLETE_NOTHING),              \
        LIVE_OPTION(of, "--timeout", NULL, REAL, timeout_s, "S",                                   \
                    "a request that takes longer has failed (3600)", COMPLETE_NOTHING),            \
        LIVE_OPTION(of, "--stall", NULL, REAL, stall_s, "S",                                       \
                    "a request that gets no byte for this time has failed (600)",                  \
                    COMPLETE_NOTHING),                                                             \
        LIVE_OPTION(of, "--metrics", NULL, REAL, metrics_s, "S",                                   \
                    "interval of reading the server's /metrics; 0: never (1)", COMPLETE_NOTHING),  \
        LIVE_OPTION(of, "--late-bound", NULL, REAL, late_ms, "MS",                                 \
                    "p99 of lateness from which the run counts as client-bound (5)",               \
                    COMPLETE_NOTHING),                                                             \
        LIVE_OPTION(of, "--max-event", NULL, COUNT, event_kib, "KIB",                              \
                    "largest event of a stream that is accepted (1024)", COMPLETE_NOTHING),        \
        LIVE_OPTION(of, "--max-answer", NULL, COUNT, answer_kib, "KIB",                            \
                    "largest stream that is accepted (65536)", COMPLETE_NOTHING),                  \
        LIVE_OPTION(of, "--no-chunks", NULL, FLAG, no_chunks, NULL, "write no chunks.csv",         \
                    COMPLETE_NOTHING),                                                             \
        LIVE_OPTION(of, "--quiet", "-q", FLAG, quiet, NULL, "no table, notes or progress",         \
                    COMPLETE_NOTHING)

/* A run against a server. */
struct live {
    char url[1024];
    struct replay_options options;
    struct replay_words words;
    struct trace_shelf traces;
    atomic_ullong n_ended, n_requests;
};

/* Fills in the run's options by the values. `config` is borrowed. 0, or -1 after a line on standard
 * error. */
int live_init(struct live *live, const char *command, const char *url,
              const struct live_options *values, const struct config *config, const char *out_dir);
/* Replays under a progress line, and says what is odd in the result. Makes out_dir. */
int live_replay(struct live *live, const struct live_options *values, struct replay_result *result,
                struct ifl_error *error);
void live_finish(struct live *live);

#endif
