/* A server in front of a flight: OpenAI's API for requests and answers, and a recording that,
 * simulated again, gives the same steps.
 *
 * serve_open listens. The flight that uses its source then serves requests, in its own thread,
 * until SIGTERM or SIGINT. */
#ifndef SIM_LIVE_SERVE_H
#define SIM_LIVE_SERVE_H

#include "config/config.h"
#include "run/source.h"

struct serve;

struct serve_options {
    const struct config *config; /* borrowed until serve_close */
    const char *trace_path;      /* of the recording; NULL: none */
    /* Called once, when the flight has begun and requests are answered. */
    void (*ready)(void *context, const struct serve *serve);
    void *context;
};

/* Creates an empty recording, a trace without rows. Returns IFL_E_INPUT if the file exists. */
int serve_make_recording(const char *trace_path, struct ifl_error *error);
/* Opens the server; returns NULL, with `error` set, on failure. The recording must have been
 * created. */
struct serve *serve_open(const struct serve_options *options, struct ifl_error *error);
const struct source *serve_source(struct serve *serve);
int serve_port(const struct serve *serve);
uint64_t serve_n_requests(const struct serve *serve); /* sent so far */
void serve_close(struct serve *serve);                /* accepts NULL */

#endif
