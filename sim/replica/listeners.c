#include "replica/listeners.h"

static void listen(struct listener_list *list, uint8_t place, bool hears)
{
    if (hears)
        list->of[list->n++] = place;
}

/* The bit of IFL_BATCHING, which each plan has set, stands for all plans: those that a module with
 * step hooks limits. The batching module itself makes the promise and is asked nothing. */
static void limit(struct listeners *on, const struct module *module)
{
    const struct ifl_policy *policy = module->policy;
    const unsigned all = policy->on_step_start || policy->on_step_end ? 1u << IFL_BATCHING : 0;
    const unsigned own = policy->kind == IFL_BATCHING ? 0 : 1u << policy->kind;
    if (all | own)
        on->bounds[on->n_bounds++] = (struct bound){module, all | own};
}

void listeners_add(struct listeners *on, const struct module *module)
{
    const struct ifl_policy *policy = module->policy;
    const uint8_t place = (uint8_t)(module - on->modules);
    listen(&on->join, place, policy->on_join != NULL);
    listen(&on->start, place, policy->on_start != NULL);
    listen(&on->undo, place, policy->on_undo != NULL);
    listen(&on->preempt, place, policy->on_preempt != NULL);
    listen(&on->leave, place, policy->on_leave != NULL);
    listen(&on->step_start, place, policy->on_step_start != NULL);
    listen(&on->step_end, place, policy->on_step_end != NULL);
    listen(&on->admission, place, policy->kind == IFL_ADMIT);
    limit(on, module);
    if (policy->kind == IFL_PREEMPT)
        on->has_ahead = policy->ops.preempt->ahead != NULL;
}
