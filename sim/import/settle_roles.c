/* Servers that only prefill or only decode: the command line of one such server is one pool of
 * cluster.pools. */
#include <string.h>

#include "import/objects.h"
#include "import/settle.h"

static void is_pool(struct settled *s, const char *name, const char *which)
{
    facts_decide(s->facts, name, FOUND_MAPS, "cluster.pools", which);
}

/* With NIXL the proxy in front says which server computes a prompt. */
void settle_role_vllm(struct settled *s, bool v1)
{
    json_t *config = object_of(s->facts, "kv_transfer_config");
    const char *connector = object_text(config, "kv_connector");
    const char *role = object_text(config, "kv_role");
    if (connector && strcmp(connector, "NixlConnector") == 0 && v1)
        is_pool(s, "kv_transfer_config",
                role && strcmp(role, "kv_producer") == 0
                    ? "this is a pool with role prefill and this preset, under cluster.preset "
                      "vllm-nixl"
                : role && strcmp(role, "kv_consumer") == 0
                    ? "this is a pool with role decode and this preset, under cluster.preset "
                      "vllm-nixl"
                    : "this is a pool with role prefill or decode, as the proxy uses it, and this "
                      "preset, under cluster.preset vllm-nixl");
    json_decref(config);
}

void settle_role_sglang(struct settled *s)
{
    const char *mode = facts_text(s->facts, "disaggregation_mode");
    if (!mode)
        return;
    if (strcmp(mode, "prefill") == 0)
        is_pool(s, "disaggregation_mode",
                "this is a pool with role prefill and preset sglang-pd-prefill, under "
                "cluster.preset sglang-pd");
    else if (strcmp(mode, "decode") == 0)
        is_pool(s, "disaggregation_mode",
                "this is a pool with role decode and preset sglang-pd-decode, under "
                "cluster.preset sglang-pd");
    else
        facts_decide(s->facts, "disaggregation_mode",
                     strcmp(mode, "null") == 0 ? FOUND_HARMLESS : FOUND_UNMODELLED, NULL,
                     strcmp(mode, "null") == 0 ? NULL : "prompts and answers on different servers");
}
