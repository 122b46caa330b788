/* Sets the host's times of a server's version if those of the profile belong to another version. */
#include "cost/hardware.h"

#include "import/settle.h"

/* A profile with times of its own for the host, as a fit to whole steps writes it, keeps them. */
static bool has_shared_deployment(struct settled *s)
{
    const char *hardware = tree_text(tree_at(s->root, "hardware"));
    struct platform platform;
    struct ifl_error error;
    return hardware && hardware_load(hardware, &platform, &error) == 0 &&
           platform.deployment_name[0];
}

void settle_deployment(struct settled *s, const char *name, const char *says)
{
    settle_host_time(s, "deployment", name, says);
}

void settle_host_time(struct settled *s, const char *key, const char *value, const char *says)
{
    if (s->code == 0 && has_shared_deployment(s))
        settle_assume(s, key, value, says);
}
