/* An order: the client that has been charged least goes first. A client is charged the prompt
 * tokens of a request when the request starts, and gets them back if the same plan undoes the
 * start. */
#include <inflight/policy.h>

struct client {
    int64_t charged_tokens;
};

static void rank(const void *self, const struct ifl_view *view, const struct ifl_request *const *of,
                 size_t n, int64_t *key)
{
    (void)view;
    for (size_t i = 0; i < n; i++)
        key[i] = ((const struct client *)ifl_client(self, of[i]))->charged_tokens;
}

static void on_start(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    struct client *client = ifl_client(self, r);
    (void)view;
    client->charged_tokens += r->n_prompt;
}

static void on_undo(void *self, const struct ifl_view *view, const struct ifl_request *r)
{
    struct client *client = ifl_client(self, r);
    (void)view;
    client->charged_tokens -= r->n_prompt;
}

static const struct ifl_order_ops ops = {.rank = rank};

static const struct ifl_policy least_charged = {
    .kind = IFL_ORDER,
    .name = "least-charged",
    .doc = "the client with the least charge goes first",
    .client_bytes = sizeof(struct client),
    .on_start = on_start,
    .on_undo = on_undo,
    .ops.order = &ops,
};

IFL_POLICIES(&least_charged);
