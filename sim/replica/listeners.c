#include "replica/listeners.h"

static void listen(struct listener_list *list, const struct module *module, bool hears)
{
    if (hears)
        list->of[list->n++] = module;
}

void listeners_add(struct listeners *on, const struct module *module)
{
    const struct ifl_policy *policy = module->policy;
    listen(&on->join, module, policy->on_join != NULL);
    listen(&on->start, module, policy->on_start != NULL);
    listen(&on->undo, module, policy->on_undo != NULL);
    listen(&on->preempt, module, policy->on_preempt != NULL);
    listen(&on->leave, module, policy->on_leave != NULL);
    listen(&on->step_start, module, policy->on_step_start != NULL);
    listen(&on->step_end, module, policy->on_step_end != NULL);
    if (policy->kind == IFL_PREEMPT)
        on->has_ahead = policy->ops.preempt->ahead != NULL;
}
