#include "cost/deployment.h"

#include <math.h>
#include <string.h>

#include "base/data.h"
#include "base/tree.h"
#include "cost/document.h"

/* ---- the table ---- */

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

#define REAL(section, field, dflt, min, max, unit, doc)                                            \
    {                                                                                              \
        .name = #field, .type = IFL_REAL, .offset = offsetof(struct section, field), dflt, min,    \
        max, NULL, unit, doc                                                                       \
    }
#define BOOL(section, field, doc)                                                                  \
    {                                                                                              \
        .name = #field, .type = IFL_BOOL, .offset = offsetof(struct section, field), 0, 0, 1,      \
        NULL, "", doc                                                                              \
    }
#define TEXT(field, doc)                                                                           \
    {                                                                                              \
        .name = #field, .type = IFL_TEXT, .offset = offsetof(struct deployment, field), 0, 0,      \
        sizeof(((struct deployment *)0)->field), NULL, "", doc                                     \
    }

const struct ifl_param deployment_fields[DEPLOYMENT_FIELDS] = {
    TEXT(about, "the server and its software"),
    TEXT(source, "where the numbers come from"),
    TEXT(assumed, "the numbers that no measurement covers"),
    {"num_blocks", IFL_INT, offsetof(struct deployment, num_blocks), 0, 0, INT32_MAX, NULL,
     "blocks",
     "KV blocks that the server reports; serving.kv.num_blocks overrides it; 0: computed"},
};
const struct ifl_param deployment_host_fields[DEPLOYMENT_HOST_FIELDS] = {
    REAL(host_times, layer_s, NAN, 0, 1, "s", "host time of a step, per layer"),
    REAL(host_times, step_s, 0, 0, 1000, "s", "host time of a step"),
    REAL(host_times, seq_s, 0, 0, 1, "s", "host time of a step, per sequence in it"),
    REAL(host_times, floor_s, 0, 0, 1000, "s",
         "shortest forward pass if the host launches kernels one by one"),
    REAL(host_times, prompt_layer_s, 0, 0, 1, "s",
         "additional host time of a step with prompts, per layer"),
    REAL(
        host_times, prompt_floor_layer_s, 0, 0, 1, "s",
        "shortest forward pass of a step with prompts, per layer, if the host launches its kernels "
        "one by one"),
    BOOL(host_times, eager,
         "kernels are launched one by one, not from CUDA graphs: allreduce_N_eager counts"),
};
const struct ifl_param deployment_memory_fields[DEPLOYMENT_MEMORY_FIELDS] = {
    REAL(deployment_memory, workspace_gib, NAN, 0, 1e6, "GiB",
         "memory besides weights, activations and KV: context, libraries, graphs"),
    REAL(deployment_memory, activation_tokens, 4096, 0, 1e9, "tokens",
         "tokens of the largest step, for which activations are reserved"),
};
const struct ifl_param deployment_front_end_fields[DEPLOYMENT_FRONT_END_FIELDS] = {
    REAL(front_end, request_s, 0, 0, 1000, "s",
         "time from the sending of a request until the engine has it"),
    REAL(front_end, prompt_token_s, 0, 0, 1, "s", "the same, per token of the prompt"),
    REAL(front_end, token_s, 0, 0, 1000, "s",
         "time from the end of a step until the clients have its tokens"),
    REAL(front_end, serial_s, 0, 0, 1000, "s",
         "before both, on one request at a time, in the order of sending"),
};

const struct ifl_param deployment_all_reduce_fields[DEPLOYMENT_ALL_REDUCE_FIELDS] = {
    REAL(deployment_all_reduce, latency_s, 0, 0, 1, "s",
         "latency of an all-reduce of small messages"),
    REAL(deployment_all_reduce, gb_per_s, 0, 0, 1e6, "GB/s",
         "rate of an all-reduce; 0: the profile's all-reduce is used"),
    REAL(deployment_all_reduce, bulk_latency_s, 0, 0, 1, "s", "latency with large messages"),
    REAL(deployment_all_reduce, bulk_gb_per_s, 0, 0, 1e6, "GB/s",
         "rate with large messages; 0: that of small ones"),
    REAL(deployment_all_reduce, bulk_from_bytes, 0, 0, 1e15, "bytes",
         "smallest large message; 0: the faster of the two counts"),
};
const struct ifl_param deployment_exchange_fields[DEPLOYMENT_EXCHANGE_FIELDS] = {
    {"method", IFL_CHOICE, offsetof(struct deployment_exchange, method), EXCHANGE_GATHER, 0, 0,
     "gather|all_to_all", "",
     "parallel.data: every rank receives all tokens, or only tokens for its experts"},
    REAL(deployment_exchange, latency_s, 0, 0, 1, "s",
         "latency of the way to the experts, and of the way back"),
    REAL(deployment_exchange, gb_per_s, 0, 0, 1e6, "GB/s",
         "rate of a rank's tokens to and from experts; 0: that of an all-reduce of the ranks"),
    REAL(deployment_exchange, dispatch_bytes, 0, 0, 16, "bytes",
         "size of an element on the way to the experts; 0: that of activations"),
    REAL(deployment_exchange, combine_bytes, 0, 0, 16, "bytes", "the same on the way back"),
    REAL(deployment_exchange, imbalance, 1, 1, 1e3, "",
         "parallel.expert: tokens of the rank with most tokens, divided by the mean"),
    {"padded_tokens", IFL_INT, offsetof(struct deployment_exchange, padded_tokens), 512, 0, 1e6,
     NULL, "tokens",
     "parallel.data: if no rank has more tokens, all compute as many as the rank with most, as in "
     "CUDA graphs"},
    REAL(deployment_exchange, expert_s, 0, 0, 1, "s",
         "of each expert that a rank holds, in a layer, with weights in fp8, picked or not"),
};

const struct ifl_param deployment_cache_fields[DEPLOYMENT_CACHE_FIELDS] = {
    REAL(deployment_cache, hit_frac, 0, 0, 1, "of each prompt",
         "beginning of the prompt, in whole blocks, that the prefix cache holds, whatever was "
         "computed before"),
};

const struct ifl_param deployment_kernels_fields[DEPLOYMENT_KERNELS_FIELDS] = {
    REAL(deployment_kernels, prompt_frac, 1, 0.1, 10, "of the profile's time",
         "factor of matrix products, element-wise work and attention of prompts in steps with "
         "prompts, if the server's kernels have another version"),
};

const struct deployment_section deployment_sections[] = {
    {"host", deployment_host_fields, DEPLOYMENT_HOST_FIELDS, offsetof(struct deployment, host)},
    {"memory", deployment_memory_fields, DEPLOYMENT_MEMORY_FIELDS,
     offsetof(struct deployment, memory)},
    {"front_end", deployment_front_end_fields, DEPLOYMENT_FRONT_END_FIELDS,
     offsetof(struct deployment, front_end)},
    {"all_reduce", deployment_all_reduce_fields, DEPLOYMENT_ALL_REDUCE_FIELDS,
     offsetof(struct deployment, all_reduce)},
    {"exchange", deployment_exchange_fields, DEPLOYMENT_EXCHANGE_FIELDS,
     offsetof(struct deployment, exchange)},
    {"cache", deployment_cache_fields, DEPLOYMENT_CACHE_FIELDS, offsetof(struct deployment, cache)},
    {"kernels", deployment_kernels_fields, DEPLOYMENT_KERNELS_FIELDS,
     offsetof(struct deployment, kernels)},
};
const size_t deployment_n_sections = COUNT_OF(deployment_sections);

/* ---- finding ---- */

/* The text of a word, or of a map's base; NULL for none. */
static const struct node *base_of(const struct node *map)
{
    const struct node *base = map && map->kind == NODE_MAP ? tree_child(map, "base") : map;
    return base && !tree_is_null(base) ? base : NULL;
}

/* An unknown name is an error at the node. */
static int blame(const struct node *node, struct ifl_error *error)
{
    char reason[sizeof error->text];
    snprintf(reason, sizeof reason, "%s", error->text);
    return error->code == IFL_E_INPUT ? tree_fail(node, error, "%s", reason) : error->code;
}

static int find_document(const struct node *base, const char *where, const char *beside,
                         struct document *document, struct ifl_error *error)
{
    char path[sizeof document->path], found[128];
    const char *name = tree_text(base);
    if (!name)
        return tree_fail(base, error, "%s is %s, expected the name of a deployment or a path",
                         where, tree_describe(base, found));
    const bool joins = beside && *name != '/' && data_is_path(name);
    if (snprintf(path, sizeof path, "%s%s", joins ? beside : "", name) >= (int)sizeof path)
        return tree_fail(base, error, "%s is a path of more than %zu bytes", where, sizeof path);
    return document_find("deployments", path, document, error) < 0 ? blame(base, error) : 0;
}

int deployment_find(const struct node *map, const char *beside, char path[512],
                    struct ifl_error *error)
{
    struct document document = {.path = ""};
    const struct node *base = base_of(map);
    const int code = base ? find_document(base, "deployment", beside, &document, error) : 0;
    memcpy(path, document.path, sizeof document.path);
    return code;
}

/* ---- reading ---- */

enum { MAX_SECTION_FIELDS = 16, MAX_SECTIONS = 16 };

/* Makes the value that stands in `before` the field's default. */
static void take_default(struct ifl_param *field, const char *before)
{
    const void *at = before + field->offset;
    if (field->type == IFL_REAL)
        field->dflt = *(const double *)at;
    else if (field->type == IFL_INT || field->type == IFL_CHOICE)
        field->dflt = *(const int32_t *)at;
    else if (field->type == IFL_BOOL)
        field->dflt = *(const bool *)at;
    else
        field->choices = at;
    ifl_assert(field->type != IFL_COUNT && field->type != IFL_TIME);
}

/* fields_read, but with the values of `before` as defaults; NULL: with those of the table. */
static int lay_fields(const struct node *map, const char *where, const struct ifl_param *fields,
                      size_t n, const char *const *others, const void *before, void *out,
                      struct ifl_error *error)
{
    struct ifl_param over[MAX_SECTION_FIELDS];
    ifl_require(n <= MAX_SECTION_FIELDS);
    memcpy(over, fields, n * sizeof *fields);
    for (size_t i = 0; before && i < n; i++)
        take_default(&over[i], before);
    return fields_read(map, where, over, n, others, out, error);
}

/* True if a whole deployment has to have the section. */
static bool is_required(const struct deployment_section *section)
{
    for (size_t i = 0; i < section->n_fields; i++)
        if (isnan(section->fields[i].dflt))
            return true;
    return false;
}

int deployment_fill_optional(struct deployment *deployment, struct ifl_error *error)
{
    int code = 0;
    for (size_t i = 0; i < deployment_n_sections && code == 0; i++)
        if (!is_required(&deployment_sections[i]))
            code = fields_read(NULL, deployment_sections[i].name, deployment_sections[i].fields,
                               deployment_sections[i].n_fields, NULL,
                               (char *)deployment + deployment_sections[i].offset, error);
    return code;
}

static int lay_section(const struct node *root, const char *where,
                       const struct deployment_section *section, const struct deployment *before,
                       struct deployment *deployment, struct ifl_error *error)
{
    char path[64];
    const struct node *map = tree_child(root, section->name);
    snprintf(path, sizeof path, "%s%s%s", where, *where ? "." : "", section->name);
    if (!before && is_required(section) && (!map || tree_is_null(map)))
        return tree_fail(root, error, "%s is missing, expected a map of keys", path);
    return lay_fields(map, path, section->fields, section->n_fields, NULL,
                      before ? (const char *)before + section->offset : NULL,
                      (char *)deployment + section->offset, error);
}

/* Lays a map over `deployment`, or reads a whole one. */
static int lay_map(const struct node *map, const char *where, bool is_whole,
                   struct deployment *deployment, struct ifl_error *error)
{
    const struct deployment copy = *deployment, *before = is_whole ? NULL : &copy;
    const char *others[MAX_SECTIONS + 3] = {NULL};
    size_t n = 0;
    for (; n < deployment_n_sections; n++)
        others[n] = deployment_sections[n].name;
    others[n++] = "intervals";
    others[n] = "base";
    int code = lay_fields(map, where, deployment_fields, DEPLOYMENT_FIELDS, others, before,
                          deployment, error);
    for (size_t i = 0; i < deployment_n_sections && code == 0; i++)
        code = lay_section(map, where, &deployment_sections[i], before, deployment, error);
    return code < 0 ? code : deployment_lay_intervals(map, where, deployment, error);
}

/* `n_bases`: how many files the document is the base of, in turn. */
static int load_document(const struct document *document, int n_bases,
                         struct deployment *deployment, struct ifl_error *error);

/* Finds the file that the `base` of the file `path` names, relative to its folder. */
static int find_base(const struct node *base, const char *path, struct document *document,
                     struct ifl_error *error)
{
    char folder[sizeof document->path];
    snprintf(folder, sizeof folder, "%.*s", document_folder_bytes(path), path);
    return find_document(base, "base", folder, document, error);
}

static int load_base(const struct node *base, const struct document *document, int n_bases,
                     struct deployment *deployment, struct ifl_error *error)
{
    struct document of;
    if (n_bases > DEPLOYMENT_BASES)
        return tree_fail(base, error,
                         "base is one of more than %d files that name each other, expected an end",
                         DEPLOYMENT_BASES);
    if (find_base(base, document->path, &of, error) < 0)
        return error->code;
    return load_document(&of, n_bases, deployment, error);
}

/* What the `base` of a deployment's file names; NULL for none. */
static const struct node *base_of_file(const struct node *root)
{
    return root->kind == NODE_MAP ? base_of(root) : NULL;
}

static int load_document(const struct document *document, int n_bases,
                         struct deployment *deployment, struct ifl_error *error)
{
    struct node *root;
    int code = 0;
    if (tree_load(document->path, &root, error) < 0)
        return error->code;
    const struct node *base = base_of_file(root);
    if (base)
        code = load_base(base, document, n_bases + 1, deployment, error);
    else
        *deployment = (struct deployment){.name = ""};
    memcpy(deployment->name, document->stem, sizeof deployment->name);
    if (code == 0)
        code = lay_map(root, "", !base, deployment, error);
    tree_free(root);
    return code;
}

void deployment_find_base(const char *path, char base_path[512])
{
    struct document document = {.path = ""};
    struct node *root = NULL;
    struct ifl_error error;
    if (tree_load(path, &root, &error) == 0 && base_of_file(root) &&
        find_base(base_of_file(root), path, &document, &error) < 0)
        document.path[0] = '\0';
    memcpy(base_path, document.path, sizeof document.path);
    tree_free(root);
}

int deployment_load(const char *name, struct deployment *deployment, struct ifl_error *error)
{
    struct document document;
    const int code = document_find("deployments", name, &document, error);
    return code < 0 ? code : load_document(&document, 0, deployment, error);
}

int deployment_lay(const struct node *map, const char *where, const char *beside,
                   struct deployment *deployment, struct ifl_error *error)
{
    struct document document;
    const struct node *base = base_of(map);
    const bool is_whole = !base && !*deployment->name;
    if (!map || tree_is_null(map))
        return 0;
    if (base &&
        (find_document(base, base == map ? where : "deployment.base", beside, &document, error) ||
         load_document(&document, 0, deployment, error)))
        return error->code;
    return base == map && map->kind == NODE_SCALAR
               ? 0
               : lay_map(map, where, is_whole, deployment, error);
}

/* ---- sections of profiles before there were deployments ---- */

struct old_host {
    double layer_us, step_us, seq_us, floor_ms;
    bool eager;
};

static const struct ifl_param old_host_fields[] = {
    REAL(old_host, layer_us, NAN, 0, 1e6, "us", "of a step, for each layer"),
    REAL(old_host, step_us, 0, 0, 1e9, "us", "of a step"),
    REAL(old_host, seq_us, 0, 0, 1e6, "us", "of a step, for each sequence in it"),
    REAL(old_host, floor_ms, 0, 0, 1e6, "ms", "shortest forward pass"),
    BOOL(old_host, eager, "kernels are launched one by one"),
};

const char *const deployment_old_sections[] = {"host", "memory", NULL};

static int read_old_section(const struct node *root, const char *name,
                            const struct ifl_param *fields, size_t n, void *out,
                            struct ifl_error *error)
{
    const struct node *map = tree_child(root, name);
    if (!map || tree_is_null(map))
        return tree_fail(root, error, "%s is missing, expected a map of keys", name);
    return fields_read(map, name, fields, n, NULL, out, error);
}

/* Division, not multiplication by 1e-6: it gives the double that is nearest to the decimal number
 * in seconds. */
int deployment_read_old(const struct node *root, struct deployment *deployment,
                        struct ifl_error *error)
{
    struct old_host old = {0};
    if (read_old_section(root, "host", old_host_fields, COUNT_OF(old_host_fields), &old, error) ||
        read_old_section(root, "memory", deployment_memory_fields, DEPLOYMENT_MEMORY_FIELDS,
                         &deployment->memory, error))
        return error->code;
    deployment->host = (struct host_times){.layer_s = old.layer_us / 1e6,
                                           .step_s = old.step_us / 1e6,
                                           .seq_s = old.seq_us / 1e6,
                                           .floor_s = old.floor_ms / 1e3,
                                           .eager = old.eager};
    return deployment_fill_optional(deployment, error);
}

/* ---- writing ---- */

static void write_remark(remark_fn *remark, void *context, const char *section, const char *field,
                         FILE *out)
{
    const char *text = remark ? remark(context, section, field) : NULL;
    fprintf(out, text ? "  # %s\n" : "\n", text);
}

/* True if the section need not be written. */
static bool is_absent(const struct deployment_section *section, const struct deployment *deployment)
{
    char is[64], dflt[64];
    bool absent = !is_required(section);
    for (size_t i = 0; i < section->n_fields && absent; i++) {
        const struct ifl_param *field = &section->fields[i];
        field_print(field, (const char *)deployment + section->offset, is, sizeof is);
        field_print_default(field, dflt, sizeof dflt);
        absent = strcmp(is, dflt) == 0;
    }
    return absent;
}

/* Below `indent` blanks. */
static void write_map(const struct deployment *deployment, const char *indent, remark_fn *remark,
                      void *context, FILE *out)
{
    char text[1100];
    for (size_t i = 0; i < DEPLOYMENT_FIELDS; i++) {
        const struct ifl_param *field = &deployment_fields[i];
        field_print(field, deployment, text, sizeof text);
        if (field->type == IFL_TEXT ? *((const char *)deployment + field->offset) == '\0'
                                    : strcmp(text, "0") == 0)
            continue;
        fprintf(out, "%s%s: %s", indent, field->name, text);
        write_remark(remark, context, "", field->name, out);
    }
    for (size_t i = 0; i < deployment_n_sections; i++) {
        const struct deployment_section *section = &deployment_sections[i];
        if (is_absent(section, deployment))
            continue;
        fprintf(out, "%s%s:", indent, section->name);
        write_remark(remark, context, section->name, NULL, out);
        for (size_t j = 0; j < section->n_fields; j++) {
            const struct ifl_param *field = &section->fields[j];
            field_print(field, (const char *)deployment + section->offset, text, sizeof text);
            fprintf(out, "%s  %s: %s", indent, field->name, text);
            write_remark(remark, context, section->name, field->name, out);
        }
    }
    deployment_write_intervals(deployment, indent, out);
}

void deployment_write(const struct deployment *deployment, remark_fn *remark, void *context,
                      FILE *out)
{
    fprintf(out, "\ndeployment:\n");
    write_map(deployment, "  ", remark, context, out);
}

void deployment_write_file(const struct deployment *deployment, remark_fn *remark, void *context,
                           FILE *out)
{
    write_map(deployment, "", remark, context, out);
}
