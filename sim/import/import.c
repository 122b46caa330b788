#include "import/import.h"

#include <string.h>

#include "base/data.h"
#include "config/config.h"
#include "config/layers.h"
#include "config/read.h"
#include "cost/cost.h"
#include "cost/hardware.h"
#include "cost/model.h"
#include "cost/roofline.h"

#include "import/command.h"
#include "import/log.h"
#include "import/names.h"
#include "import/settle.h"

/* ---- reading ---- */

/* --model takes what the key `model` takes, or the name of a checkpoint as a server takes it. */
static int choose_model(const char *name, struct facts *facts, struct ifl_error *error)
{
    static const struct place at = {"--model", 0};
    char path[512];
    if (data_resolve("models", name, path, error) == 0)
        return facts_say(facts, "chosen_model", name, at, false, error);
    const char *profile = model_profile(name);
    if (!profile && data_is_path(name))
        return ifl_fail(error, IFL_E_INPUT,
                        "--model is %.200s, expected a file, a folder with a config.json, or a "
                        "name of configs/models or of a checkpoint of one",
                        name);
    if (!profile)
        return error->code;
    const int code = facts_say(facts, "chosen_model", profile, at, false, error);
    return code == 0 ? facts_say(facts, "chosen_checkpoint", name, at, false, error) : code;
}

/* What a log says otherwise does not count against --engine-version: it may be newer than what is
 * known. */
static int choose(const struct import_sources *sources, struct facts *facts,
                  struct ifl_error *error)
{
    static const struct place version = {"--engine-version", 0}, hardware = {"--hardware", 0};
    char path[512];
    const struct gpu_name *gpu = sources->hardware ? gpu_name_find(sources->hardware) : NULL;
    int code = 0;
    if (sources->version)
        code = facts_say(facts, "version", sources->version, version, true, error);
    if (code == 0 && sources->model)
        code = choose_model(sources->model, facts, error);
    if (code == 0 && sources->hardware)
        code = data_resolve("hardware", sources->hardware, path, error);
    if (code == 0 && sources->hardware)
        code = facts_say(facts, "chosen_hardware", sources->hardware, hardware, false, error);
    return code == 0 && gpu ? facts_say(facts, "gpu", gpu->name, hardware, false, error) : code;
}

typedef int read_one(const struct import_sources *sources, size_t i, struct facts *facts,
                     struct ifl_error *error);

static int read_log(const struct import_sources *sources, size_t i, struct facts *facts,
                    struct ifl_error *error)
{
    return log_read(sources->logs[i], facts, error);
}

static int read_answer(const struct import_sources *sources, size_t i, struct facts *facts,
                       struct ifl_error *error)
{
    return answer_read(&sources->answers[i], facts, error);
}

/* A log, or an answer, is read by the rules of a server that a later one may name. Those in front
 * of that one are then read again. */
static int read_all(const struct import_sources *sources, size_t n, read_one *read,
                    struct facts *facts, struct ifl_error *error)
{
    size_t n_unread = 0;
    int code = 0;
    for (size_t i = 0; i < n && code == 0; i++) {
        code = read(sources, i, facts, error);
        n_unread += !facts->has_server;
    }
    for (size_t i = 0; i < n_unread && code == 0 && facts->has_server; i++)
        code = read(sources, i, facts, error);
    return code;
}

static int read_sources(const struct import_sources *sources, struct facts *facts,
                        struct ifl_error *error)
{
    int code = choose(sources, facts, error);
    if (code == 0 && sources->command.text)
        code = command_read(&sources->command, facts, error);
    if (code == 0)
        code = read_all(sources, sources->n_logs, read_log, facts, error);
    if (code == 0)
        code = read_all(sources, sources->n_answers, read_answer, facts, error);
    if (code == 0 && !facts->has_server && sources->n_answers > 0)
        code = ifl_fail_at(error, sources->answers[0].name, 0, 0,
                           "no sample is of a server that is known, expected the /metrics of vLLM "
                           "or SGLang");
    if (code == 0 && !facts->has_server)
        code = ifl_fail_at(error, sources->logs[0], 0, 0,
                           "no line is of a server that is known, expected the start-up log of "
                           "vLLM, SGLang or TensorRT-LLM");
    return code;
}

/* Versions that --engine-version stands in for. */
static int report_replaced(struct facts *facts, struct ifl_error *error)
{
    const struct fact *chosen = facts_get(facts, "version");
    char what[160];
    int code = 0;
    for (size_t i = 0; chosen && chosen->forced && i < facts->n && code == 0; i++) {
        const struct fact *fact = &facts->of[i];
        if (strcmp(fact->name, "version") != 0 || strcmp(fact->value, chosen->value) == 0)
            continue;
        snprintf(what, sizeof what, "%s %.60s for %.60s", server_name(facts->server), chosen->value,
                 fact->value);
        code = facts_find(facts, FOUND_ASSUMED, (struct place){0}, what, NULL, "--engine-version",
                          error);
    }
    return code;
}

int import_resolve(const struct node *user, struct config *config, struct ifl_error *error)
{
    const struct node *name = tree_at(user, "serving.preset");
    struct node *upper = tree_copy(user), *root = NULL;
    int code = upper ? layer_expand(upper, error) : ifl_fail_nomem(error);
    struct node *trace = code == 0 ? tree_scalar("none", true, upper) : NULL;
    if (code == 0 && !tree_at(upper, "workload.trace"))
        code = trace ? tree_put(upper, "workload.trace", trace, error) : ifl_fail_nomem(error);
    if (code == 0 && name)
        code = preset_load("serving", name->text, &root, error);
    if (code == 0 && root)
        code = layer_lay(root, upper, error);
    if (code == 0)
        code = config_read(root ? root : upper, config, error);
    tree_free(trace);
    tree_free(upper);
    tree_free(root);
    return code;
}

/* As a run checks it: the ranks share the model evenly. A model that cannot be loaded, such as a
 * folder of another machine, is not looked at. */
static int check_ranks(const struct config *config, struct ifl_error *error)
{
    struct model model;
    if (!config->model[0] || model_load(config->model, &model, error) < 0)
        return 0;
    const struct parallel parallel = config_parallel(config);
    return model_spread(&model, &parallel, &model, error)
               ? error->code
               : model_check_parallel(&model, config->tensor_parallel, error);
}

/* As a run prices steps: the card's profile has times for this model and these ranks. */
static int check_times(const struct config *config, struct ifl_error *error)
{
    const struct parallel parallel = config_parallel(config);
    struct platform platform;
    struct ifl_error unknown;
    struct model model;
    if (hardware_load(config->hardware, &platform, error) < 0 ||
        deployment_lay(config->deployment, "deployment", NULL, &platform.deployment, error) < 0)
        return error->code;
    if (!config->model[0] || model_load(config->model, &model, &unknown) < 0)
        return roofline_check_links(&platform, &parallel, error);
    model_set_dtype(&model, (enum model_dtype)config->dtype);
    struct cost *cost =
        cost_create_roofline(&model, &platform, &parallel, config->serving.kv.block_tokens, error);
    cost_destroy(cost);
    return cost ? 0 : error->code;
}

/* No error here: another profile may be set. */
static int find_refused(const struct config *config, struct facts *facts, struct ifl_error *error)
{
    struct ifl_error wrong;
    if (!config->hardware[0] || check_times(config, &wrong) == 0)
        return 0;
    return facts_find(facts, FOUND_UNMODELLED, (struct place){0}, wrong.text, NULL,
                      "`inflight run` refuses this", error);
}

/* What a server cannot have had is refused here, in the words of the keys. */
static int check(const struct node *root, struct facts *facts, struct ifl_error *error)
{
    struct config config = {0};
    struct ifl_error wrong;
    if (import_resolve(root, &config, &wrong) == 0) {
        wrong.code = check_ranks(&config, &wrong);
        const int code = wrong.code == 0 ? find_refused(&config, facts, error) : 0;
        config_finish(&config);
        if (wrong.code == 0)
            return code;
    }
    return ifl_fail(error, wrong.code, "what is imported is no configuration: %.600s", wrong.text);
}

/* A profile of the user's own tells its GPU by its name and its memory. */
static int read_profile(const struct import_sources *sources, struct platform *platform,
                        struct gpu_name *gpu, struct ifl_error *error)
{
    if (!sources->hardware || gpu_name_find(sources->hardware))
        return 0;
    if (hardware_load(sources->hardware, platform, error) < 0)
        return error->code;
    const double gib = platform->hardware.gpu.memory_gib;
    *gpu = (struct gpu_name){platform->hardware.name, NULL, gib, 1024 * gib};
    return 0;
}

int import_read(const struct import_sources *sources, struct facts *facts, struct node **root,
                struct ifl_error *error)
{
    static void (*const settle[N_SERVERS])(struct settled *) = {settle_vllm, settle_sglang,
                                                                settle_trtllm};
    static const struct node nowhere = {.file = (char *)"import"};
    struct platform platform;
    *facts = (struct facts){0};
    *root = NULL;
    struct settled s = {.facts = facts,
                        .error = error,
                        .from_log = sources->n_logs > 0,
                        .log = sources->n_logs > 0 ? sources->logs[0] : NULL};
    if (read_sources(sources, facts, error) < 0 || report_replaced(facts, error) < 0 ||
        read_profile(sources, &platform, &s.profile, error) < 0)
        return error->code;
    s.root = tree_node(NODE_MAP, &nowhere);
    if (!s.root)
        return ifl_fail_nomem(error);
    settle[facts->server](&s);
    if (s.code == 0)
        s.code = check(s.root, facts, error);
    if (s.code < 0)
        tree_free(s.root);
    else
        *root = s.root;
    return s.code;
}

const char *import_other_device(const struct facts *facts)
{
    for (size_t i = 0; i < facts->n_findings; i++) {
        const struct finding *f = &facts->findings[i];
        if (f->kind == FOUND_UNMODELLED && f->says && strcmp(f->says, OTHER_DEVICE) == 0)
            return f->what;
    }
    return NULL;
}

/* ---- the report ---- */

static const char *const kinds[] = {"maps",         "assumed", "harmless",
                                    "not modelled", "unknown", "not read"};

static void print_place(struct place at, FILE *out)
{
    if (at.file && at.line)
        fprintf(out, "%s:%ld: ", at.file, at.line);
    else if (at.file)
        fprintf(out, "%s: ", at.file);
}

/* Data-parallel ranks are replicas, unless they share experts. */
static const char *key_of(const struct finding *f, const struct node *root)
{
    const bool shares = strcmp(f->key, "cluster.replicas") == 0 && tree_at(root, "parallel.data");
    return shares ? "parallel.data" : f->key;
}

/* Of a list of modules the first that has the key. */
static const struct node *value_at(const struct node *root, const char *key)
{
    const char *dot = strrchr(key, '.');
    const struct node *value = tree_at(root, key), *list = NULL;
    char parent[128];
    if (!value && dot) {
        snprintf(parent, sizeof parent, "%.*s", (int)(dot - key), key);
        list = tree_at(root, parent);
    }
    for (size_t i = 0; list && list->kind == NODE_LIST && i < list->n && !value; i++)
        value = tree_child(list->of[i], dot + 1);
    return value;
}

/* True for a number, a name or a list of them: lists of modules and maps are in the file alone. */
static bool has_one_line(const struct node *value)
{
    bool has = value->kind == NODE_SCALAR || (value->kind == NODE_LIST && value->n > 0);
    for (size_t i = 0; has && value->kind == NODE_LIST && i < value->n; i++)
        has = value->of[i]->kind == NODE_SCALAR;
    return has;
}

/* What has one line, as YAML writes it. */
static void print_value(const struct node *value, FILE *out)
{
    if (value->kind == NODE_SCALAR)
        fputs(value->text, out);
    for (size_t i = 0; i < value->n; i++)
        fprintf(out, "%s%s", i == 0 ? "[" : ", ", value->of[i]->text);
    if (value->kind == NODE_LIST)
        fputs("]", out);
}

static void print_key(const struct finding *f, const struct node *root, FILE *out)
{
    const char *key = key_of(f, root);
    const struct node *value = value_at(root, key);
    const char *arrow = *f->what ? " -> " : "";
    if (!value || !has_one_line(value)) {
        fprintf(out, "%s%s, left as it is", arrow, key);
        return;
    }
    fprintf(out, "%s%s=", arrow, key);
    print_value(value, out);
}

/* Harmless findings of one line stand side by side. */
static bool goes_on(const struct facts *facts, size_t i)
{
    const struct finding *f = &facts->findings[i], *before = f - 1;
    return i > 0 && f->kind == FOUND_HARMLESS && before->kind == FOUND_HARMLESS && f->at.file &&
           f->at.file == before->at.file && f->at.line == before->at.line;
}

void import_report(const struct facts *facts, const struct node *root, const char *before,
                   FILE *out)
{
    for (size_t i = 0; i < facts->n_findings; i++) {
        const struct finding *f = &facts->findings[i];
        if (goes_on(facts, i)) {
            fprintf(out, ", %s", f->what);
            continue;
        }
        fprintf(out, "%s%s%-13s ", i ? "\n" : "", before, kinds[f->kind]);
        print_place(f->at, out);
        fprintf(out, "%s", f->what);
        if (f->key)
            print_key(f, root, out);
        if (f->says)
            fprintf(out, ": %s", f->says);
    }
    fprintf(out, "%s", facts->n_findings ? "\n" : "");
}
