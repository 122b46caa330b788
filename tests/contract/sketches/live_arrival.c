/* A live request that comes during a stretch of steps: while a source is open the loop looks at it
 * at each end, and the promise of a plan ends there, whatever the plan has promised. */
#include "inflight/executor.h"
#include "inflight/policy.h"

struct mailbox { /* filled by a server between two steps */
    struct ifl_incoming of[16];
    size_t n;
    bool is_closed;
};

static int take(void *self, int64_t now_ns, struct ifl_incoming *incoming)
{
    struct mailbox *box = self;
    (void)now_ns;
    if (box->n == 0)
        return box->is_closed ? IFL_SOURCE_CLOSED : IFL_SOURCE_EMPTY;
    *incoming = box->of[--box->n];
    return IFL_SOURCE_ARRIVAL;
}
static void plan(const void *self, const struct ifl_view *view, struct ifl_step *step)
{
    (void)self;
    (void)view;
    ifl_decode_one_by_one(step, 0);
    ifl_promise(step, 1000, INT64_MAX, 0);
}
const struct ifl_source_ops mailbox_source = {sizeof(struct ifl_source_ops), take};
const struct ifl_batching_ops decodes_on = {plan};
