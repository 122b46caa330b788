/* Ray Serve LLM: an LLMConfig of llm_configs (python/ray/llm/_internal/serve/configs). */
#include <stdlib.h>
#include <string.h>

#include "import/flag_words.h"
#include "import/manifest_parts.h"
#include "import/names.h"
#include "import/recipe_keys.h"
#include "import/settings.h"

static const struct place here = {NULL, 0};

static const struct recipe_key config_keys[] = {
    READ("accelerator_type"),
    READ("deployment_config"),
    READ("engine_kwargs"),
    READ("model_loading_config"),
    READ("runtime_env"),
    ELSEWHERE("experimental_configs", "settings of Ray that may change from release to release"),
    UNMODELLED("lora_config", OF_ADAPTERS),
    HARMLESS("accelerator_config"),
    HARMLESS("callback_config"),
    HARMLESS("llm_engine"),
    HARMLESS("log_engine_metrics"),
    HARMLESS("placement_group_config"),
    HARMLESS("resources_per_bundle"),
};

static const struct recipe_key deployment_keys[] = {
    READ("autoscaling_config"),
    READ("num_replicas"),
    UNMODELLED("max_ongoing_requests", "a limit of requests in front of the server"),
    UNMODELLED("max_queued_requests", "a limit of requests in front of the server"),
    UNMODELLED("request_router_config", OF_ROUTER),
    HARMLESS("graceful_shutdown_timeout_s"),
    HARMLESS("graceful_shutdown_wait_loop_s"),
    HARMLESS("health_check_period_s"),
    HARMLESS("health_check_timeout_s"),
    HARMLESS("logging_config"),
    HARMLESS("name"),
    HARMLESS("placement_group_bundles"),
    HARMLESS("placement_group_strategy"),
    HARMLESS("ray_actor_options"),
    HARMLESS("user_config"),
};

static const struct recipe_key loading_keys[] = {
    READ("model_id"),
    READ("model_source"),
    HARMLESS("tokenizer_source"),
};

/* Its source, which may be a map with the address of a bucket, else its id. */
static int model_of(const struct recipe *r, const struct node *loading, const char **model)
{
    const struct node *source = settings_member(loading, "model_source");
    const bool is_map = source && source->kind == NODE_MAP;
    if (recipe_text(r, is_map ? source : loading, is_map ? "bucket_uri" : "model_source", model) <
            0 ||
        (!*model && recipe_text(r, loading, "model_id", model) < 0))
        return r->error->code;
    return *model ? 0
                  : tree_fail(loading, r->error,
                              "no model_source and no model_id, expected the name of a checkpoint");
}

static void put_variables(const struct node *variables, FILE *out)
{
    for (size_t i = 0; variables && variables->kind == NODE_MAP && i < variables->n; i++)
        if (tree_text(variables->of[i])) {
            fprintf(out, "%s=", variables->of[i]->key);
            manifest_put_quoted(variables->of[i]->text, out);
        }
}

/* A name that only one GPU has; H100 may be of several boards. */
static int find_gpu(const struct recipe *r, const char *type)
{
    const struct gpu_name *gpu = type ? gpu_name_only(type) : NULL;
    char what[100];
    if (!type)
        return 0;
    snprintf(what, sizeof what, "accelerator_type: %.60s", type);
    if (!gpu)
        return recipe_find(r, FOUND_UNKNOWN, "", what,
                           "no GPU, or several, have this name: set hardware");
    return facts_say(r->facts, "gpu", gpu->name, here, false, r->error) < 0
               ? r->error->code
               : facts_find(r->facts, FOUND_MAPS, here, what, "hardware", NULL, r->error);
}

static int find_replicas(const struct recipe *r, const struct node *deployment)
{
    const struct node *scaling;
    if (recipe_map(r, deployment, "autoscaling_config", &scaling) < 0)
        return r->error->code;
    const char *most = tree_text(settings_member(scaling, "max_replicas"));
    if (recipe_replicas(r, deployment, "num_replicas") < 0 ||
        recipe_replicas(r, scaling, "min_replicas") < 0)
        return r->error->code;
    return most && strcmp(most, "1") != 0
               ? recipe_find(r, FOUND_UNMODELLED, "autoscaling_config.", "max_replicas", OF_SCALER)
               : 0;
}

struct parts {
    const struct node *loading, *kwargs, *deployment, *environment;
};

static int parts_of(const struct recipe *r, struct parts *parts)
{
    if (recipe_map(r, r->map, "model_loading_config", &parts->loading) < 0 ||
        recipe_map(r, r->map, "engine_kwargs", &parts->kwargs) < 0 ||
        recipe_map(r, r->map, "deployment_config", &parts->deployment) < 0)
        return r->error->code;
    return recipe_map(r, r->map, "runtime_env", &parts->environment);
}

static int put_config(const struct recipe *r, FILE *out)
{
    struct parts of;
    const char *model, *gpu;
    if (parts_of(r, &of) < 0 || model_of(r, of.loading, &model) < 0 ||
        recipe_text(r, r->map, "accelerator_type", &gpu) < 0 || find_gpu(r, gpu) < 0)
        return r->error->code;
    put_variables(settings_member(of.environment, "env_vars"), out);
    fputs("vllm serve ", out);
    manifest_put_quoted(model, out);
    if ((of.kwargs && flag_words_put(of.kwargs, SERVER_VLLM, out, r->error) < 0) ||
        recipe_keys(r, r->map, "", RECIPE_KEYS(config_keys), SERVER_VLLM, NULL) < 0 ||
        recipe_keys(r, of.loading, "model_loading_config.", RECIPE_KEYS(loading_keys), SERVER_VLLM,
                    NULL) < 0 ||
        recipe_keys(r, of.deployment, "deployment_config.", RECIPE_KEYS(deployment_keys),
                    SERVER_VLLM, NULL) < 0)
        return r->error->code;
    return find_replicas(r, of.deployment);
}

static int check_list(const struct recipe *r)
{
    const struct node *list = settings_member(r->map, "llm_configs");
    for (size_t i = 0; list && i < list->n; i++)
        if (list->of[i]->kind == NODE_SCALAR)
            return tree_fail(list->of[i], r->error,
                             "llm_configs names the file %.200s, expected its keys: import that "
                             "file",
                             list->of[i]->text);
    return 0;
}

int recipe_ray(const struct recipe *r, bool *is_one)
{
    struct recipe_command command;
    if (check_list(r) < 0)
        return r->error->code;
    *is_one = settings_member(r->map, "model_loading_config") != NULL;
    if (!*is_one)
        return 0;
    if (recipe_open(r, &command) < 0)
        return r->error->code;
    return recipe_end(r, r->map, &command, put_config(r, command.out));
}
