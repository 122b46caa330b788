/* Replaces the server if inflight was built without libevent. */
#include "live/serve.h"

static int fail(struct ifl_error *error)
{
    return ifl_fail(error, IFL_E_DEVICE,
                    "this inflight has no server: it was built without libevent (-Dlive=enabled, "
                    "libevent-dev)");
}

int serve_make_recording(const char *trace_path, struct ifl_error *error)
{
    (void)trace_path;
    return fail(error);
}

struct serve *serve_open(const struct serve_options *options, struct ifl_error *error)
{
    (void)options;
    fail(error);
    return NULL;
}

const struct source *serve_source(struct serve *serve)
{
    (void)serve;
    return NULL;
}

int serve_port(const struct serve *serve)
{
    (void)serve;
    return -1;
}

uint64_t serve_n_requests(const struct serve *serve)
{
    (void)serve;
    return 0;
}

void serve_close(struct serve *serve)
{
    (void)serve;
}
