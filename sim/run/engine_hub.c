#include "run/engine_hub.h"

#include "base/clock.h"

/* A waiting thread looks at the stop flag that often: a signal sets it and wakes no thread. */
static const int64_t LOOK_NS = 20000000;

int engine_hub_create(struct engine_hub *hub)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0)
        return IFL_E_NOMEM;
    hub->has_locks = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
                     pthread_mutex_init(&hub->lock, NULL) == 0 &&
                     pthread_cond_init(&hub->submitted, &attributes) == 0 &&
                     pthread_cond_init(&hub->ended, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
    return hub->has_locks ? 0 : IFL_E_NOMEM;
}

void engine_hub_destroy(struct engine_hub *hub)
{
    token_ids_destroy(&hub->ids);
    if (!hub->has_locks)
        return;
    pthread_mutex_destroy(&hub->lock);
    pthread_cond_destroy(&hub->submitted);
    pthread_cond_destroy(&hub->ended);
}

void engine_hub_begin(struct engine_hub *hub)
{
    hub->epoch_ns = clock_steady_ns();
}

int64_t engine_hub_now(const struct engine_hub *hub)
{
    const struct source *source = hub->source;
    return source ? source->ops->now(source->self) : clock_steady_ns() - hub->epoch_ns;
}

void engine_hub_tell(struct engine_hub *hub)
{
    pthread_cond_broadcast(&hub->ended);
    pthread_cond_broadcast(&hub->submitted);
    if (hub->source)
        hub->source->ops->wake(hub->source->self);
}

/* The source waits in place of the lock, and is woken at each end. */
static void wait_at_source(struct engine_hub *hub, int64_t at_ns)
{
    pthread_mutex_unlock(&hub->lock);
    hub->source->ops->wait(hub->source->self, at_ns);
    pthread_mutex_lock(&hub->lock);
}

void engine_hub_wait(struct engine_hub *hub, int64_t now_ns, int64_t at_ns)
{
    if (hub->source) {
        wait_at_source(hub, at_ns);
        return;
    }
    at_ns = (at_ns - now_ns < LOOK_NS ? at_ns : now_ns + LOOK_NS) + hub->epoch_ns;
    const struct timespec at = {.tv_sec = (time_t)(at_ns / IFL_NS_PER_S),
                                .tv_nsec = (long)(at_ns % IFL_NS_PER_S)};
    pthread_cond_timedwait(&hub->ended, &hub->lock, &at);
}
