#include "run/carrier.h"

#include <stdlib.h>

#include "base/array.h"
#include "inflight/minmax.h"

int carrier_create(struct carrier *carrier, uint32_t number, struct carried *carried,
                   const struct flight *flight, uint32_t n, const struct link_spec *spec)
{
    const struct ifl_executor_ops *executor = flight->executor;
    *carrier = (struct carrier){.number = number,
                                .carried = carried,
                                .executor = executor->move ? executor : NULL,
                                .self = flight->executor_self};
    return links_create(&carrier->links, n, spec);
}

void carrier_destroy(struct carrier *carrier)
{
    links_destroy(&carrier->links);
    free(carrier->copies);
}

int carrier_add(struct carrier *carrier, struct ifl_copy copy)
{
    if (array_room(&carrier->copies, carrier->n_copies, &carrier->cap_copies, 64,
                   sizeof *carrier->copies) < 0)
        return IFL_E_NOMEM;
    carrier->copies[carrier->n_copies++] = copy;
    return 0;
}

int carrier_send(struct carrier *carrier, const struct link_load *load, int32_t from, int32_t to,
                 struct ifl_error *error)
{
    ifl_assert(load->tag <= UINT32_MAX);
    const uint64_t tag = (uint64_t)carrier->number << 32 | load->tag;
    const struct ifl_kv_move move = {tag, from, to, carrier->copies, carrier->n_copies};
    if (!carrier->executor)
        return links_send(&carrier->links, load) < 0 ? ifl_fail_nomem(error) : 0;
    carrier->n_copies = 0;
    carrier->n_going++;
    return carrier->executor->move(carrier->self, &move, error);
}

static int take_copied(struct carrier *carrier, int64_t until_ns, struct link_arrival *arrival,
                       struct ifl_error *error)
{
    struct carried *carried = carrier->carried;
    const struct ifl_kv_moved *moved = &carried->moved;
    if (!carried->is_there) {
        const int rc = carrier->executor->moved(carrier->self, until_ns, &carried->moved, error);
        if (rc <= 0)
            return rc;
        carried->is_there = true;
    }
    if (moved->tag >> 32 != carrier->number)
        return 0;
    carried->is_there = false;
    carrier->n_going--;
    *arrival = (struct link_arrival){.sent_ns = moved->sent_ns,
                                     .begun_ns = moved->start_ns,
                                     .end_ns = moved->end_ns,
                                     .alone_ns = moved->end_ns - moved->start_ns,
                                     .tag = (uint32_t)moved->tag};
    return 1;
}

int carrier_take_sent(struct carrier *carrier, int64_t until_ns, struct link_arrival *arrival,
                      struct ifl_error *error)
{
    if (carrier->executor)
        return take_copied(carrier, until_ns, arrival, error);
    const int rc = links_take(&carrier->links, until_ns, arrival);
    return rc < 0 ? ifl_fail_nomem(error) : rc;
}
