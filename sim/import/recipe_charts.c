/* Values of Helm charts: vllm-project/production-stack (helm/templates/deployment-vllm-multi.yaml),
 * and llm-d-incubation/llm-d-modelservice (templates/_helpers.tpl). */
#include <stdlib.h>
#include <string.h>

#include "import/manifest_parts.h"
#include "import/recipe_keys.h"
#include "import/settings.h"
#include "import/start.h"
#include "import/words.h"

/* ---- production-stack ---- */

static const struct recipe_key stack_keys[] = {
    READ("modelURL"),
    READ("repository"),
    READ("tag"),
    READ("vllmConfig"),
    READ("lmcacheConfig"),
    READ("env"),
    READ("replicaCount"),
    READ("resources"),
    FLAG("enableLoRA", "enable-lora"),
    FLAG("modelRevision", "revision"),
    UNMODELLED("raySpec", "a server on several nodes: its flags are not in this map"),
    UNMODELLED("autoscaling", OF_SCALER),
    UNMODELLED("keda", OF_SCALER),
    UNMODELLED("loraAdapters", OF_ADAPTERS),
    ELSEWHERE("envFromSecret", "variables of another file"),
    HARMLESS("name"),
    HARMLESS("affinity"),
    HARMLESS("annotations"),
    HARMLESS("chatTemplate"),
    HARMLESS("chatTemplateConfigMap"),
    HARMLESS("enableTool"),
    HARMLESS("extraVolumeMounts"),
    HARMLESS("extraVolumes"),
    HARMLESS("hf_token"),
    HARMLESS("imagePullPolicy"),
    HARMLESS("imagePullSecret"),
    HARMLESS("initContainer"),
    HARMLESS("labels"),
    HARMLESS("limitCPU"),
    HARMLESS("limitMemory"),
    HARMLESS("nodeName"),
    HARMLESS("nodeSelectorTerms"),
    HARMLESS("pdb"),
    HARMLESS("podAnnotations"),
    HARMLESS("priorityClassName"),
    HARMLESS("pvcAccessMode"),
    HARMLESS("pvcAnnotations"),
    HARMLESS("pvcLabels"),
    HARMLESS("pvcMatchLabels"),
    HARMLESS("pvcStorage"),
    HARMLESS("requestCPU"),
    HARMLESS("requestMemory"),
    GPUS("requestGPU"),
    GPUS("limitGPU"),
    READ("requestGPUType"),
    HARMLESS("runtimeClassName"),
    HARMLESS("serviceAccountName"),
    HARMLESS("shmSize"),
    HARMLESS("storageClass"),
    HARMLESS("strategy"),
    HARMLESS("terminationGracePeriodSeconds"),
    HARMLESS("tolerations"),
    HARMLESS("toolCallParser"),
};

static const struct recipe_key vllm_keys[] = {
    READ("v0"),
    READ("extraArgs"),
    READ("enablePrefixCaching"),
    FLAG("convert", "convert"),
    FLAG("dtype", "dtype"),
    FLAG("enableChunkedPrefill", "enable-chunked-prefill"),
    FLAG("gpuMemoryUtilization", "gpu-memory-utilization"),
    FLAG("maxLoras", "max-loras"),
    FLAG("maxModelLen", "max-model-len"),
    FLAG("maxNumSeqs", "max-num-seqs"),
    FLAG("runner", "runner"),
    FLAG("tensorParallelSize", "tensor-parallel-size"),
    HARMLESS("prometheusMultiprocDir"),
    {"v1", NULL, FOUND_HARMLESS, "a key of older charts"},
};

static const struct recipe_key lmcache_keys[] = {
    READ("enabled"),
    READ("enablePD"),
    READ("kvRole"),
    READ("cpuOffloadingBufferSize"),
    UNMODELLED("diskOffloadingBufferSize", OF_TIER),
    UNMODELLED("enableController", OF_ROUTER),
    UNMODELLED("enableP2P", OF_TIER),
    HARMLESS("logLevel"),
    HARMLESS("cudaVisibleDevices"),
    HARMLESS("instanceId"),
    HARMLESS("controllerPort"),
    HARMLESS("controllerReplyPort"),
    HARMLESS("workerPorts"),
    HARMLESS("workerHeartbeatTime"),
    HARMLESS("distributedPort"),
    HARMLESS("p2pHost"),
    HARMLESS("p2pInitPorts"),
    HARMLESS("rpcPort"),
    HARMLESS("enableNixl"),
    HARMLESS("nixlRole"),
    HARMLESS("nixlPeerHost"),
    HARMLESS("nixlPeerPort"),
    HARMLESS("nixlBufferSize"),
    HARMLESS("nixlBufferDevice"),
    HARMLESS("nixlEnableGc"),
};

static const struct recipe_key engine_keys[] = {
    READ("modelSpec"),
    READ("env"),
    ELSEWHERE("configs", "variables of another file"),
    UNMODELLED("keda", OF_SCALER),
    UNMODELLED("autoscaling", OF_SCALER),
    HARMLESS("enableEngine"),
    HARMLESS("annotations"),
    HARMLESS("containerPort"),
    HARMLESS("containerSecurityContext"),
    HARMLESS("extraPorts"),
    HARMLESS("imagePullPolicy"),
    HARMLESS("labels"),
    HARMLESS("livenessProbe"),
    HARMLESS("maxUnavailablePodDisruptionBudget"),
    HARMLESS("readinessProbe"),
    HARMLESS("runtimeClassName"),
    HARMLESS("schedulerName"),
    HARMLESS("securityContext"),
    HARMLESS("serviceAccountName"),
    HARMLESS("pdb"),
    HARMLESS("serviceMonitor"),
    HARMLESS("servicePort"),
    HARMLESS("sidecar"),
    HARMLESS("startupProbe"),
    HARMLESS("strategy"),
    HARMLESS("tolerations"),
    HARMLESS("vllmApiKey"),
};

static const struct recipe_key stack_root[] = {
    READ("servingEngineSpec"),
    UNMODELLED("routerSpec", OF_ROUTER),
    UNMODELLED("cacheserverSpec", OF_TIER),
    UNMODELLED("loraController", OF_ADAPTERS),
    HARMLESS("loraAdapters"),
    HARMLESS("sharedStorage"),
    HARMLESS("sharedPvcStorage"),
    HARMLESS("grafanaDashboards"),
    HARMLESS("kube-prometheus-stack"),
    HARMLESS("prometheus-adapter"),
    HARMLESS("opentelemetry-collector"),
};

/* The chart writes either flag if there is a vllmConfig at all. */
static int put_prefix_cache(const struct recipe *r, const struct node *config, FILE *out)
{
    const char *caches = tree_text(settings_member(config, "enablePrefixCaching"));
    const bool is_on = caches && strcmp(caches, "false") != 0;
    if (!config)
        return 0;
    fprintf(out, "--%senable-prefix-caching ", is_on ? "" : "no-");
    return caches ? 0
                  : recipe_find(r, FOUND_ASSUMED, "", "--no-enable-prefix-caching",
                                "the chart writes it unless enablePrefixCaching is true");
}

static bool is_true(const struct node *map, const char *key)
{
    const char *text = tree_text(settings_member(map, key));
    return text && strcmp(text, "true") == 0;
}

static void put_lmcache_size(const struct node *cache, FILE *out)
{
    const char *gib = tree_text(settings_member(cache, "cpuOffloadingBufferSize"));
    if (!is_true(cache, "enabled") || !gib || strcmp(gib, "0") == 0)
        return;
    fputs("LMCACHE_MAX_LOCAL_CPU_SIZE=", out);
    manifest_put_quoted(gib, out);
}

static int put_lmcache(const struct recipe *r, const struct node *cache, bool is_v0, FILE *out)
{
    const char *role;
    if (!cache || !is_true(cache, "enabled"))
        return 0;
    if (recipe_text(r, cache, "kvRole", &role) < 0 ||
        recipe_keys(r, cache, "lmcacheConfig.", RECIPE_KEYS(lmcache_keys), SERVER_VLLM, out) < 0)
        return r->error->code;
    role = role ? role : "kv_both";
    if (strspn(role, "abcdefghijklmnopqrstuvwxyz_") != strlen(role))
        return tree_fail(settings_member(cache, "kvRole"), r->error,
                         "kvRole is %.60s, expected kv_both, kv_producer or kv_consumer", role);
    fprintf(out,
            "--kv-transfer-config '{\"kv_connector\":\"LMCacheConnector%s\",\"kv_role\":\"%s\"}' ",
            is_v0 ? "" : "V1", role);
    return is_true(cache, "enablePD")
               ? recipe_find(r, FOUND_UNMODELLED, "lmcacheConfig.", "enablePD",
                             "prompts and answers on different servers: see cluster.pools")
               : 0;
}

static int put_image(const struct recipe *r, const struct node *model, FILE *out)
{
    const char *repository, *tag;
    char image[400];
    if (recipe_text(r, model, "repository", &repository) < 0 ||
        recipe_text(r, model, "tag", &tag) < 0)
        return r->error->code;
    snprintf(image, sizeof image, "%.200s%s%.150s", repository ? repository : "vllm",
             tag ? ":" : "", tag ? tag : "");
    /* of lmcache/vllm-openai and others the tag is no version of vLLM */
    if (repository && strcmp(repository, "vllm/vllm-openai") == 0)
        manifest_put_quoted(image, out);
    return repository && strcmp(repository, "vllm/vllm-openai") != 0
               ? recipe_find(r, FOUND_HARMLESS, "", image, NULL)
               : 0;
}

static int put_stack(const struct recipe *r, const struct node *engine, const struct node *model,
                     FILE *out)
{
    const struct node *config, *cache;
    const char *name;
    if (recipe_map(r, model, "vllmConfig", &config) < 0 ||
        recipe_map(r, model, "lmcacheConfig", &cache) < 0 ||
        recipe_text(r, model, "modelURL", &name) < 0 || recipe_variables(r, engine, out) < 0 ||
        recipe_variables(r, model, out) < 0)
        return r->error->code;
    const char *v0 = tree_text(settings_member(config, "v0"));
    const bool is_v0 = v0 && strcmp(v0, "1") == 0;
    if (!name)
        return tree_fail(model, r->error, "no modelURL, expected the name of a checkpoint");
    fputs(is_v0 ? "VLLM_USE_V1=0 " : "", out);
    put_lmcache_size(cache, out);
    if (put_image(r, model, out) < 0)
        return r->error->code;
    fputs("vllm serve ", out);
    manifest_put_quoted(name, out);
    if (recipe_keys(r, model, "", RECIPE_KEYS(stack_keys), SERVER_VLLM, out) < 0 ||
        recipe_keys(r, config, "vllmConfig.", RECIPE_KEYS(vllm_keys), SERVER_VLLM, out) < 0 ||
        put_prefix_cache(r, config, out) < 0 || recipe_words(r, config, "extraArgs", out) < 0 ||
        put_lmcache(r, cache, is_v0, out) < 0 || recipe_replicas(r, model, "replicaCount") < 0 ||
        recipe_device(r, tree_text(settings_member(model, "requestGPUType"))) < 0)
        return r->error->code;
    return recipe_resources(r, model);
}

static int read_stack(const struct recipe *r, const struct node *engine, const struct node *model)
{
    struct recipe_command command;
    if (recipe_open(r, &command) < 0)
        return r->error->code;
    return recipe_end(r, model, &command, put_stack(r, engine, model, command.out));
}

int recipe_stack(const struct recipe *r, bool *is_one)
{
    const struct node *engine = settings_member(r->map, "servingEngineSpec");
    const struct node *models;
    int code = recipe_maps(r, engine, "modelSpec", "an item of modelSpec", &models);
    *is_one = models != NULL;
    if (!models)
        return 0;
    for (size_t i = 0; i < models->n && code == 0; i++)
        code = read_stack(r, engine, models->of[i]);
    if (code == 0)
        code = recipe_keys(r, engine, "", RECIPE_KEYS(engine_keys), SERVER_VLLM, NULL);
    if (code == 0)
        code = recipe_keys(r, r->map, "", RECIPE_KEYS(stack_root), SERVER_VLLM, NULL);
    return code;
}

/* ---- llm-d-modelservice ---- */

static const struct recipe_key llm_d_root[] = {
    READ("modelArtifacts"),
    READ("decode"),
    READ("prefill"),
    UNMODELLED("routing", OF_ROUTER),
    UNMODELLED("requester", "a server that sleeps until it is asked for"),
    HARMLESS("accelerator"),
    HARMLESS("dra"),
    HARMLESS("extraObjects"),
    HARMLESS("fullnameOverride"),
    HARMLESS("multinode"),
    HARMLESS("nameOverride"),
    HARMLESS("schedulerName"),
    HARMLESS("serviceAccountOverride"),
    HARMLESS("tracing"),
};

static const struct recipe_key llm_d_role[] = {
    READ("containers"),
    READ("create"),
    READ("parallelism"),
    READ("replicas"),
    UNMODELLED("autoscaling", OF_SCALER),
    HARMLESS("acceleratorTypes"),
    HARMLESS("annotations"),
    HARMLESS("autoGenerateName"),
    HARMLESS("enableService"),
    HARMLESS("extraConfig"),
    HARMLESS("hostIPC"),
    HARMLESS("hostPID"),
    HARMLESS("imagePullSecrets"),
    HARMLESS("initContainers"),
    HARMLESS("labels"),
    HARMLESS("monitoring"),
    HARMLESS("podAnnotations"),
    HARMLESS("podSecurityContext"),
    HARMLESS("priorityClassName"),
    HARMLESS("schedulerName"),
    HARMLESS("subGroupPolicy"),
    HARMLESS("tolerations"),
    HARMLESS("volumes"),
};

static const struct recipe_key llm_d_parallelism[] = {
    FLAG("tensor", "tensor-parallel-size"),
    FLAG("data", "data-parallel-size"),
    FLAG("dataLocal", "data-parallel-size-local"),
    {"workers", NULL, FOUND_HARMLESS, "nodes of the server"},
};

static const struct recipe_key llm_d_container[] = {
    READ("args"),
    READ("command"),
    READ("env"),
    READ("modelCommand"),
    READ("resources"),
    {"image", NULL, FOUND_HARMLESS, "its tag is that of llm-d"},
    ELSEWHERE("envFrom", "variables of another file"),
    HARMLESS("extraConfig"),
    HARMLESS("imagePullPolicy"),
    HARMLESS("livenessProbe"),
    HARMLESS("mountModelVolume"),
    HARMLESS("name"),
    HARMLESS("ports"),
    HARMLESS("readinessProbe"),
    HARMLESS("securityContext"),
    HARMLESS("startupProbe"),
    HARMLESS("volumeMounts"),
    HARMLESS("workingDir"),
};

static int put_model_of(const struct recipe *r, FILE *out)
{
    const struct node *artifacts = settings_member(r->map, "modelArtifacts");
    const char *address, *name;
    if (recipe_text(r, artifacts, "uri", &address) < 0 ||
        recipe_text(r, artifacts, "name", &name) < 0)
        return r->error->code;
    const char *model = recipe_model(address, name);
    if (!model)
        return tree_fail(artifacts, r->error, "no uri and no name, expected those of a checkpoint");
    manifest_put_quoted(model, out);
    return 0;
}

/* With the command of its own, a container starts its server itself. */
static int put_llm_d(const struct recipe *r, const struct node *role, const struct node *container,
                     FILE *out)
{
    const char *by = tree_text(settings_member(container, "modelCommand"));
    const struct node *parallelism;
    const bool is_own = !by || strcmp(by, "custom") == 0;
    if (recipe_map(r, role, "parallelism", &parallelism) < 0 ||
        recipe_variables(r, container, out) < 0)
        return r->error->code;
    if (is_own)
        return recipe_words(r, container, "command", out) < 0 ||
                       recipe_words(r, container, "args", out) < 0
                   ? r->error->code
                   : 0;
    fputs("vllm serve ", out);
    if (put_model_of(r, out) < 0 ||
        recipe_keys(r, parallelism, "parallelism.", RECIPE_KEYS(llm_d_parallelism), SERVER_VLLM,
                    out) < 0)
        return r->error->code;
    return recipe_words(r, container, "args", out);
}

static int find_llm_d(const struct recipe *r, const struct node *role, const struct node *container)
{
    char path[40];
    snprintf(path, sizeof path, "%.20s.", role->key);
    if (recipe_keys(r, role, path, RECIPE_KEYS(llm_d_role), SERVER_VLLM, NULL) < 0 ||
        recipe_keys(r, container, "", RECIPE_KEYS(llm_d_container), SERVER_VLLM, NULL) < 0 ||
        recipe_replicas(r, role, "replicas") < 0)
        return r->error->code;
    return recipe_resources(r, container);
}

static int read_container(const struct recipe *r, const struct node *role,
                          const struct node *container)
{
    struct recipe_command command;
    if (recipe_open(r, &command) < 0)
        return r->error->code;
    int code = put_llm_d(r, role, container, command.out);
    fflush(command.out);
    if (code == 0 && !start_is_in(command.text)) { /* beside the server */
        fclose(command.out);
        free(command.text);
        return recipe_find(r, FOUND_HARMLESS, "containers.",
                           tree_text(settings_member(container, "name"))
                               ? tree_text(settings_member(container, "name"))
                               : "",
                           "it starts no server");
    }
    code = recipe_end(r, container, &command, code);
    return code == 0 ? find_llm_d(r, role, container) : code;
}

static int read_role(const struct recipe *r, const struct node *role)
{
    const struct node *containers;
    const char *create = tree_text(settings_member(role, "create"));
    if (!role || (create && strcmp(create, "false") == 0))
        return role ? recipe_find(r, FOUND_HARMLESS, role->key, "", "create: false") : 0;
    int code = recipe_maps(r, role, "containers", "a container", &containers);
    for (size_t i = 0; containers && i < containers->n && code == 0; i++)
        code = read_container(r, role, containers->of[i]);
    return code;
}

int recipe_llm_d(const struct recipe *r, bool *is_one)
{
    const struct node *decode = settings_member(r->map, "decode"),
                      *prefill = settings_member(r->map, "prefill");
    *is_one = settings_member(r->map, "modelArtifacts") && (decode || prefill);
    if (!*is_one)
        return 0;
    if (read_role(r, decode) < 0 || read_role(r, prefill) < 0)
        return r->error->code;
    return recipe_keys(r, r->map, "", RECIPE_KEYS(llm_d_root), SERVER_VLLM, NULL);
}
