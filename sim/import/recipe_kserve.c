/* KServe: an InferenceService (python/huggingfaceserver/huggingfaceserver/__main__.py has the
 * arguments of its server, which are vLLM's and a few of its own), and an LLMInferenceService
 * (config/llmisvcconfig has the templates that its flags are laid into). */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "import/flag_words.h"
#include "import/manifest_parts.h"
#include "import/recipe_keys.h"
#include "import/settings.h"
#include "import/words.h"

/* ---- arguments of the Hugging Face server ---- */

/* Its own arguments: those of vLLM that they stand for, or "". */
static const char *const own[][2] = {
    {"--model_id", "--model"},
    {"--max_length", "--max-model-len"},
    {"--backend", ""},
    {"--configure_logging", ""},
    {"--disable_lower_case", ""},
    {"--disable_special_tokens", ""},
    {"--enable_docs_url", ""},
    {"--enable_grpc", ""},
    {"--enable_latency_logging", ""},
    {"--force_download", ""},
    {"--grpc_port", ""},
    {"--http_port", ""},
    {"--log_config_file", ""},
    {"--max_asyncio_workers", ""},
    {"--max_log_len", ""},
    {"--max_threads", ""},
    {"--model_dir", ""},
    {"--model_name", ""},
    {"--model_revision", ""},
    {"--predictor_host", ""},
    {"--predictor_protocol", ""},
    {"--predictor_request_timeout_seconds", ""},
    {"--predictor_use_ssl", ""},
    {"--return_probabilities", ""},
    {"--return_token_type_ids", ""},
    {"--task", ""},
    {"--tensor_input_names", ""},
    {"--tokenizer_revision", ""},
    {"--workers", ""},
};

/* vLLM's name of such an argument, "" if it has none, NULL: the word is none of them. */
static const char *renamed(const char *word)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "="), word);
    for (char *c = name; *c; c++)
        *c = (char)(*c == '-' && c > name + 1 ? '_' : *c);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strcmp(own[i][0], name) == 0)
            return own[i][1];
    return NULL;
}

static int check_backend(const struct recipe *r, const struct node *model, const char *word,
                         const char *value)
{
    if (strncmp(word, "--backend", 9) != 0 || !value || strcasecmp(value, "vllm") == 0 ||
        strcasecmp(value, "auto") == 0)
        return 0;
    return tree_fail(settings_member(model, "args"), r->error,
                     "--backend is %.60s, expected vllm or auto", value);
}

static const char *value_at(const struct words *words, size_t i)
{
    const char *equals = strchr(words->of[i], '='),
               *next = i + 1 < words->n ? words->of[i + 1] : "-";
    return equals ? equals + 1 : *next != '-' ? next : NULL;
}

/* An argument of the server's own, or one that vLLM has by another name. */
static int put_own(const struct recipe *r, const struct node *map, const struct words *words,
                   size_t i, FILE *out)
{
    const char *word = words->of[i], *name = renamed(word), *value = value_at(words, i);
    const bool has_sign = strchr(word, '=');
    char what[160];
    if (*name && value) {
        fprintf(out, "%s ", name);
        manifest_put_quoted(value, out);
        return 0;
    }
    snprintf(what, sizeof what, "%.60s%s%.80s", word, has_sign || !value ? "" : " ",
             has_sign || !value ? "" : value);
    return check_backend(r, map, word, value) < 0 ? r->error->code
                                                  : recipe_find(r, FOUND_HARMLESS, "", what, NULL);
}

struct arguments {
    bool has_model; /* one of them names it */
};

static bool names_model(const char *word)
{
    const char *name = renamed(word);
    const size_t n = strcspn(word, "=");
    return (name && strcmp(name, "--model") == 0) || (n == 7 && strncmp(word, "--model", 7) == 0);
}

/* Of the model that KServe mounts, the storage says what it is; it fills in {{.Name}}. */
static bool is_filled_in(const struct words *words, size_t i)
{
    static const char mounted[] = "/mnt/models";
    const char *value = value_at(words, i);
    return value && (strstr(value, "{{") || (names_model(words->of[i]) &&
                                             strncmp(value, mounted, sizeof mounted - 1) == 0));
}

/* One argument, with its value where this function knows that there is one. */
static int put_argument(const struct recipe *r, const struct node *map, const struct words *words,
                        size_t *i, struct arguments *arguments, FILE *out)
{
    const size_t at = (*i)++;
    const char *word = words->of[at], *value = value_at(words, at);
    const bool is_next = value && !strchr(word, '='), is_own = renamed(word) != NULL;
    if (is_filled_in(words, at)) {
        *i += is_next;
        return recipe_find(r, FOUND_HARMLESS, "", word, "KServe says its value");
    }
    arguments->has_model |= names_model(word);
    if (is_own) {
        *i += is_next;
        return put_own(r, map, words, at, out);
    }
    manifest_put_quoted(word, out);
    return 0;
}

static int put_arguments(const struct recipe *r, const struct node *map,
                         struct arguments *arguments, FILE *out)
{
    size_t n_bytes;
    char *text = NULL;
    struct words words;
    FILE *own_words = open_memstream(&text, &n_bytes);
    if (!own_words)
        return ifl_fail_nomem(r->error);
    int code = recipe_words(r, map, "args", own_words);
    if (fclose(own_words) != 0 && code == 0)
        code = ifl_fail_nomem(r->error);
    const int split = code == 0 ? words_split(text, &words, r->error) : code;
    free(text);
    if (split < 0)
        return split;
    for (size_t i = 0; i < words.n && code == 0;)
        code = put_argument(r, map, &words, &i, arguments, out);
    words_free(&words);
    return code;
}

/* ---- InferenceService ---- */

static const struct recipe_key model_keys[] = {
    READ("args"),
    READ("env"),
    READ("modelFormat"),
    READ("resources"),
    READ("storageUri"),
    READ("storage"),
    ELSEWHERE("envFrom", "variables of another file"),
    HARMLESS("image"),
    HARMLESS("livenessProbe"),
    HARMLESS("name"),
    HARMLESS("ports"),
    HARMLESS("protocolVersion"),
    HARMLESS("readinessProbe"),
    HARMLESS("runtime"),
    HARMLESS("runtimeVersion"),
    HARMLESS("securityContext"),
    HARMLESS("startupProbe"),
    HARMLESS("volumeMounts"),
};

static const struct recipe_key worker_keys[] = {
    FLAG("pipelineParallelSize", "pipeline-parallel-size"),
    FLAG("tensorParallelSize", "tensor-parallel-size"),
    HARMLESS("containers"),
    HARMLESS("nodeSelector"),
    HARMLESS("tolerations"),
    HARMLESS("volumes"),
};

static const struct recipe_key predictor_keys[] = {
    READ("minReplicas"),
    READ("model"),
    READ("workerSpec"),
    UNMODELLED("autoScaling", OF_SCALER),
    UNMODELLED("maxReplicas", OF_SCALER),
    UNMODELLED("canaryTrafficPercent", OF_ROUTER),
    UNMODELLED("containerConcurrency", "a limit of requests in front of the server"),
    HARMLESS("affinity"),
    HARMLESS("annotations"),
    HARMLESS("deploymentStrategy"),
    HARMLESS("imagePullSecrets"),
    HARMLESS("labels"),
    HARMLESS("nodeSelector"),
    HARMLESS("scaleMetric"),
    HARMLESS("scaleTarget"),
    HARMLESS("schedulerName"),
    HARMLESS("serviceAccountName"),
    HARMLESS("timeout"),
    HARMLESS("tolerations"),
    HARMLESS("volumes"),
};

static bool is_runtime(const struct node *map)
{
    static const char *const kinds[] = {"ServingRuntime", "ClusterServingRuntime", NULL};
    const char *kind = tree_text(settings_member(map, "kind"));
    return kind && word_is_one_of(kind, kinds);
}

/* The first container of the runtime that the model names, or of any where it names none; NULL:
 * there is none in the manifest. */
static const struct node *runtime_of(const struct node *roots, const struct node *model)
{
    const char *wanted = tree_text(settings_member(model, "runtime"));
    for (size_t i = 0; roots && i < roots->n; i++) {
        const struct node *metadata = settings_member(roots->of[i], "metadata");
        const char *name = tree_text(settings_member(metadata, "name"));
        const struct node *containers =
            settings_member(settings_member(roots->of[i], "spec"), "containers");
        if (is_runtime(roots->of[i]) && (!wanted || (name && strcmp(wanted, name) == 0)) &&
            containers && containers->kind == NODE_LIST && containers->n > 0 &&
            containers->of[0]->kind == NODE_MAP)
            return containers->of[0];
    }
    return NULL;
}

static const struct node *model_of(const struct node *spec)
{
    return settings_member(settings_member(spec, "predictor"), "model");
}

bool recipe_is_of_service(const struct node *map, const struct node *roots)
{
    bool is = false;
    if (!is_runtime(map))
        return false;
    for (size_t i = 0; roots && i < roots->n && !is; i++) {
        const struct node *model = model_of(settings_member(roots->of[i], "spec"));
        is = model && runtime_of(roots, model) != NULL;
    }
    return is;
}

/* s3://BUCKET/PATH of `storage`, or storageUri. */
static int storage_of(const struct recipe *r, const struct node *model, const char **address)
{
    const struct node *storage;
    if (recipe_text(r, model, "storageUri", address) < 0 ||
        recipe_map(r, model, "storage", &storage) < 0)
        return r->error->code;
    if (*address)
        return 0;
    return storage ? recipe_text(r, storage, "path", address) : 0;
}

/* The first container of a runtime, in front of the service's own arguments (KServe's
 * MergeRuntimeContainers); NULL: KServe's own runtime has it. */
static int put_runtime(const struct recipe *r, const struct node *container,
                       struct arguments *arguments, FILE *out)
{
    const char *image = tree_text(settings_member(container, "image"));
    if (image && strstr(image, "vllm-openai"))
        manifest_put_quoted(image, out);
    if (settings_member(container, "command")) {
        if (recipe_words(r, container, "command", out) < 0)
            return r->error->code;
    } else {
        fputs("vllm serve ", out);
    }
    return container ? put_arguments(r, container, arguments, out) : 0;
}

static int put_service(const struct recipe *r, const struct node *predictor,
                       const struct node *model, FILE *out)
{
    const struct node *worker, *container = runtime_of(r->roots, model);
    const char *address;
    struct arguments arguments = {false};
    if (recipe_map(r, predictor, "workerSpec", &worker) < 0 || storage_of(r, model, &address) < 0 ||
        recipe_variables(r, container, out) < 0 || recipe_variables(r, model, out) < 0 ||
        put_runtime(r, container, &arguments, out) < 0 ||
        put_arguments(r, model, &arguments, out) < 0)
        return r->error->code;
    if (!arguments.has_model && address) {
        fputs("--model ", out);
        manifest_put_quoted(recipe_model(address, NULL), out);
    }
    if (recipe_keys(r, worker, "workerSpec.", RECIPE_KEYS(worker_keys), SERVER_VLLM, out) < 0 ||
        recipe_keys(r, model, "", RECIPE_KEYS(model_keys), SERVER_VLLM, NULL) < 0 ||
        recipe_keys(r, predictor, "", RECIPE_KEYS(predictor_keys), SERVER_VLLM, NULL) < 0 ||
        recipe_replicas(r, predictor, "minReplicas") < 0)
        return r->error->code;
    return recipe_resources(r, model);
}

static bool serves_vllm(const struct node *format)
{
    const char *name = tree_text(settings_member(format, "name"));
    return name && (strcasecmp(name, "huggingface") == 0 || strcasecmp(name, "vllm") == 0);
}

int recipe_kserve(const struct recipe *r, bool *is_one)
{
    const struct node *predictor = settings_member(r->map, "predictor"), *model = model_of(r->map);
    const struct node *format;
    struct recipe_command command;
    if (recipe_map(r, model, "modelFormat", &format) < 0)
        return r->error->code;
    *is_one = serves_vllm(format) && !settings_member(model, "command");
    if (!*is_one)
        return 0;
    if (recipe_open(r, &command) < 0)
        return r->error->code;
    return recipe_end(r, model, &command, put_service(r, predictor, model, command.out));
}

/* ---- LLMInferenceService ---- */

static const struct recipe_key service_keys[] = {
    READ("model"),
    READ("parallelism"),
    READ("prefill"),
    READ("replicas"),
    READ("runtime"),
    READ("template"),
    {"worker", NULL, FOUND_HARMLESS, "the same server on a further node"},
    ELSEWHERE("baseRefs", "settings of another resource"),
    UNMODELLED("router", OF_ROUTER),
    UNMODELLED("scaling", OF_SCALER),
    HARMLESS("annotations"),
    HARMLESS("labels"),
    HARMLESS("storageInitializer"),
    HARMLESS("tracing"),
};

static const struct recipe_key parallelism_keys[] = {
    FLAG("data", "data-parallel-size"),       FLAG("dataLocal", "data-parallel-size-local"),
    FLAG("expert", "enable-expert-parallel"), FLAG("pipeline", "pipeline-parallel-size"),
    FLAG("tensor", "tensor-parallel-size"),   HARMLESS("dataRPCPort"),
};

static const struct recipe_key container_keys[] = {
    READ("args"),
    READ("command"),
    READ("env"),
    READ("image"),
    READ("resources"),
    ELSEWHERE("envFrom", "variables of another file"),
    HARMLESS("imagePullPolicy"),
    HARMLESS("lifecycle"),
    HARMLESS("livenessProbe"),
    HARMLESS("name"),
    HARMLESS("ports"),
    HARMLESS("readinessProbe"),
    HARMLESS("securityContext"),
    HARMLESS("startupProbe"),
    HARMLESS("volumeMounts"),
    HARMLESS("workingDir"),
};

/* The container called main, or the first; NULL: the templates of KServe have it. */
static const struct node *main_of(const struct node *part)
{
    const struct node *containers =
        settings_member(settings_member(part, "template"), "containers");
    for (size_t i = 0; containers && containers->kind == NODE_LIST && i < containers->n; i++) {
        const char *name = tree_text(settings_member(containers->of[i], "name"));
        if (name && strcmp(name, "main") == 0)
            return containers->of[i];
    }
    return containers && containers->kind == NODE_LIST && containers->n > 0 ? containers->of[0]
                                                                            : NULL;
}

/* The templates put its words into their command. */
static int put_additional(const struct recipe *r, const struct node *container, FILE *out)
{
    const struct node *variables = settings_member(container, "env");
    const struct container c = {
        .map = container, .is_item = true, .given = r->given, .own = &(struct variables){0}};
    int code = 0;
    for (size_t i = 0; variables && i < variables->n && code == 0; i++) {
        const struct node *variable = variables->of[i];
        const char *name = tree_text(settings_member(variable, "name"));
        const struct node *value = settings_member(variable, "value");
        if (name && strcmp(name, "VLLM_ADDITIONAL_ARGS") == 0 && tree_text(value))
            code = manifest_put_words(&c, value, out, r->error);
    }
    return code;
}

/* The checkpoint is that of hf://, else the model's own name. */
static int put_checkpoint(const struct recipe *r, const struct node *spec, FILE *out)
{
    const struct node *model;
    const char *address, *name;
    if (recipe_map(r, spec, "model", &model) < 0 || recipe_text(r, model, "uri", &address) < 0 ||
        recipe_text(r, model, "name", &name) < 0)
        return r->error->code;
    const char *checkpoint = recipe_model(address, name);
    if (!checkpoint)
        return tree_fail(spec, r->error, "no model with a uri, expected that of a checkpoint");
    manifest_put_quoted(checkpoint, out);
    return settings_member(model, "lora")
               ? recipe_find(r, FOUND_UNMODELLED, "model.", "lora", OF_ADAPTERS)
               : 0;
}

static int put_template(const struct recipe *r, const struct node *spec, const struct node *part,
                        FILE *out)
{
    const struct node *container = main_of(part), *parallelism;
    const char *runtime, *image = tree_text(settings_member(container, "image"));
    if (recipe_text(r, spec, "runtime", &runtime) < 0 ||
        recipe_map(r, part, "parallelism", &parallelism) < 0 ||
        recipe_variables(r, container, out) < 0)
        return r->error->code;
    const bool is_sglang = runtime && strcmp(runtime, "sglang") == 0;
    if (image && strstr(image, "vllm-openai"))
        manifest_put_quoted(image, out);
    if (settings_member(container, "command")) {
        if (recipe_words(r, container, "command", out) < 0)
            return r->error->code;
    } else {
        fputs(is_sglang ? "python3 -m sglang.launch_server --model-path " : "vllm serve ", out);
        if (put_checkpoint(r, spec, out) < 0 ||
            recipe_keys(r, parallelism, "parallelism.", RECIPE_KEYS(parallelism_keys),
                        is_sglang ? SERVER_SGLANG : SERVER_VLLM, out) < 0)
            return r->error->code;
    }
    return recipe_words(r, container, "args", out) < 0 ? r->error->code
                                                       : put_additional(r, container, out);
}

static int read_part(const struct recipe *r, const struct node *spec, const struct node *part)
{
    const struct node *pod, *containers;
    struct recipe_command command;
    if (recipe_map(r, part, "template", &pod) < 0 ||
        recipe_maps(r, pod, "containers", "a container", &containers) < 0 ||
        recipe_open(r, &command) < 0)
        return r->error->code;
    const struct node *container = main_of(part);
    const int code = put_template(r, spec, part, command.out);
    if (recipe_end(r, container ? container : part, &command, code) < 0 ||
        recipe_keys(r, container, "", RECIPE_KEYS(container_keys), SERVER_VLLM, NULL) < 0 ||
        recipe_replicas(r, part, "replicas") < 0)
        return r->error->code;
    return container ? recipe_resources(r, container) : 0;
}

int recipe_llm_service(const struct recipe *r, bool *is_one)
{
    const char *kind = tree_text(settings_member(r->map, "kind"));
    const struct node *spec, *prefill;
    *is_one = kind && strcmp(kind, "LLMInferenceService") == 0;
    if (!*is_one)
        return 0;
    if (recipe_map(r, r->map, "spec", &spec) < 0)
        return r->error->code;
    if (!spec)
        return tree_fail(r->map, r->error, "no spec, expected that of an LLMInferenceService");
    if (recipe_map(r, spec, "prefill", &prefill) < 0 || read_part(r, spec, spec) < 0 ||
        (prefill && read_part(r, spec, prefill) < 0))
        return r->error->code;
    return recipe_keys(r, spec, "", RECIPE_KEYS(service_keys), SERVER_VLLM, NULL);
}
