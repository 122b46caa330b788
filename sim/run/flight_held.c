/* Steps that are held until the K/V that they need has arrived. */
#include "run/flight_loop.h"

static bool awaits(const struct loop *loop, const struct replica *replica)
{
    return replica->moving.n_before > 0 ||
           (loop->tiering && tiering_awaited(loop->tiering, replica));
}

bool loop_hold_step(struct loop *loop, const struct replica *replica)
{
    if (!awaits(loop, replica))
        return false;
    loop->held[replica->fixed.number] = true;
    return true;
}

int loop_let_step_go(struct loop *loop, struct replica *replica, struct ifl_error *error)
{
    if (!loop->held[replica->fixed.number] || awaits(loop, replica))
        return 0;
    struct ifl_step_desc desc = *in_flight_last(&replica->in_flight);
    desc.start_ns = loop->now_ns;
    loop->held[replica->fixed.number] = false;
    loop->n_busy++;
    return loop_submit(loop->flight, replica, &desc, error);
}
