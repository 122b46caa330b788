/* The load client where inflight was built without libcurl. */
#include "live/replay.h"

static int fail(struct ifl_error *error)
{
    return ifl_fail(error, IFL_E_DEVICE,
                    "this inflight has no load client: it was built without libcurl "
                    "(-Dreplay=enabled, libcurl4-openssl-dev)");
}

int replay_server_check(const struct replay_server *server, struct ifl_error *error)
{
    (void)server;
    return fail(error);
}

int replay_run(const struct replay_options *options, struct replay_result *result,
               struct ifl_error *error)
{
    (void)options;
    *result = (struct replay_result){0};
    return fail(error);
}

void replay_print(const struct replay_result *result, FILE *out)
{
    (void)result;
    (void)out;
}

void replay_version(const struct replay_server *server, char text[128])
{
    (void)server;
    *text = '\0';
}

int replay_http_get(const struct replay_server *server, const char *path, size_t most_bytes,
                    double timeout_s, struct replay_got *got, struct ifl_error *error)
{
    (void)server;
    (void)path;
    (void)most_bytes;
    (void)timeout_s;
    *got = (struct replay_got){0};
    return fail(error);
}
