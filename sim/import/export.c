/* Writes a configuration as the command line of a server. */
#include <stdlib.h>
#include <string.h>

#include "base/data.h"
#include "config/config.h"
#include "config/read.h"

#include "cost/model.h"

#include "import/export_more.h"
#include "import/import.h"
#include "import/names.h"
#include "import/settle.h"

enum { MAX_COMMAND_BYTES = 4096 };

/* A server with the scheduler of a preset: the version to name, and what starts it. */
static const struct dialect {
    enum server server;
    const char *version, *start;
    int number; /* of the version: 0.9.1 is 901 */
    bool v1;    /* vLLM */
} dialects[] = {
    {SERVER_VLLM, "0.33.0", "vllm serve", 3300, true},
    {SERVER_VLLM, "0.30.0", "vllm serve", 3000, true},
    {SERVER_VLLM, "0.19.0", "vllm serve", 1900, true},
    {SERVER_VLLM, "0.9.0", "VLLM_USE_V1=1 vllm serve", 900, true},
    {SERVER_VLLM, "0.8.5", "VLLM_USE_V1=0 vllm serve", 805, false},
    {SERVER_VLLM, "0.6.3", "vllm serve", 603, false},
    {SERVER_SGLANG, NULL, "python -m sglang.launch_server --model-path", 0, false},
};
enum { N_DIALECTS = sizeof dialects / sizeof *dialects };

/* Arguments of vLLM that not every version has: from, up to and without. */
static const struct span {
    const char *name;
    int from, to;
    int engine; /* 0: V0 alone; 1: V1 alone; -1: both */
} spans[] = {
    {"async_scheduling", 1000, 9999, 1},
    {"scheduler_reserve_full_isl", 1900, 9999, 1},
    {"watermark", 2300, 9999, 1},
    {"max_num_queued_reqs", 2900, 9999, 1},
    {"max_num_queued_tokens", 2900, 9999, 1},
    {"max_num_active_seqs", 3100, 9999, 1},
    {"long_prefill_token_threshold_adaptive", 3100, 9999, 1},
    {"long_prefill_token_threshold", 703, 9999, -1},
    {"num_scheduler_steps", 600, 1100, 0},
    {"max_num_partial_prefills", 703, 1100, 0},
    {"max_long_partial_prefills", 703, 1100, 0},
    {"enable_lora", 800, 9999, 1},
    {"scheduler_delay_factor", 0, 1100, 0},
    {"swap_space", 0, 1100, 0},
    {"preemption_mode", 0, 1100, 0},
    {"use_v2_block_manager", 0, 604, 0},
    {"enable_chunked_prefill", 0, 9999, 0},
};

struct writer {
    const struct dialect *dialect;
    const struct node *root; /* every key */
    char line[MAX_COMMAND_BYTES];
    size_t used;
};

static void add(struct writer *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (w->used < sizeof w->line)
        w->used += (size_t)vsnprintf(w->line + w->used, sizeof w->line - w->used, format, args);
    va_end(args);
}

static bool has_adapters(const struct node *root)
{
    const struct node *list = tree_at(root, "serving.admit");
    const char *first =
        list && list->kind == NODE_LIST ? tree_text(tree_child(list->of[0], "policy")) : NULL;
    return first && strcmp(first, "adapter-slots") == 0;
}

static bool has(const struct dialect *dialect, const char *name)
{
    for (size_t i = 0; i < sizeof spans / sizeof *spans; i++)
        if (strcmp(spans[i].name, name) == 0)
            return dialect->server != SERVER_VLLM ||
                   (dialect->number >= spans[i].from && dialect->number < spans[i].to &&
                    (spans[i].engine < 0 || spans[i].engine == (int)dialect->v1));
    return true;
}

/* ---- values ---- */

static const char *dtype_word(const char *dtype)
{
    return strcmp(dtype, "bf16") == 0   ? "bfloat16"
           : strcmp(dtype, "fp16") == 0 ? "float16"
           : strcmp(dtype, "fp32") == 0 ? "float32"
           : strcmp(dtype, "fp8") == 0  ? "fp8_e4m3"
                                        : "";
}

static const char *order_word(const char *policy)
{
    for (size_t i = 0; i < n_sglang_orders; i++)
        if (strcmp(sglang_orders[i].policy, policy) == 0)
            return sglang_orders[i].name;
    return "";
}

/* A count of blocks as the server says it: vLLM's V1 counts its null block, SGLang counts tokens.
 */
static void put_blocks(const struct writer *w, char value[64])
{
    const long long blocks = atoll(key_text(w->root, "serving.kv.num_blocks"));
    const long long null_blocks = atoll(key_text(w->root, "serving.kv.null_blocks"));
    const long long each = atoll(key_text(w->root, "serving.kv.block_tokens"));
    if (blocks == 0)
        *value = '\0';
    else if (w->dialect->server == SERVER_SGLANG)
        snprintf(value, 64, "%lld", blocks * each);
    else
        snprintf(value, 64, "%lld", blocks - null_blocks + w->dialect->v1);
}

static long long count_at(const struct node *root, const char *key)
{
    return atoll(key_text(root, key));
}

/* Of SGLang --tp-size are all GPUs, where attention is in parallel: the groups of --dp-size. */
static const char *gpus_of(const struct writer *w, const struct server_flag *flag, char text[32])
{
    const long long data = count_at(w->root, "parallel.data");
    const bool is_sglang = w->dialect->server == SERVER_SGLANG;
    long long gpus = count_at(w->root, flag->key);
    if (strcmp(flag->key, "cluster.replicas") == 0 && data > 1)
        gpus = data;
    if (strcmp(flag->key, "parallel.tensor") == 0 && is_sglang)
        gpus *= data;
    snprintf(text, 32, "%lld", gpus);
    return strcmp(flag->name, "moe_a2a_backend") == 0 ? "" : text; /* a name: the profile's */
}

/* Of SGLang seats and chunk are all groups', and a group has 0.3 of the conservativeness. True: the
 * flag is one of them. */
static bool put_share(const struct writer *w, const struct server_flag *flag, char value[64])
{
    const long long groups = count_at(w->root, "parallel.data");
    const char *text = key_text(w->root, flag->key);
    if (w->dialect->server != SERVER_SGLANG || groups <= 1)
        return false;
    if (strcmp(flag->name, "schedule_conservativeness") == 0)
        snprintf(value, 64, "%.17g", strtod(text, NULL) / 0.3);
    else if (strcmp(flag->name, "max_running_requests") == 0 ||
             (strcmp(flag->name, "chunked_prefill_size") == 0 && strcmp(text, "0") != 0))
        snprintf(value, 64, "%lld", atoll(text) * groups);
    else
        return false;
    return true;
}

/* Words that a flag has of its own for what a key says. */
static const char *word_of(const struct writer *w, const struct server_flag *flag, const char *text)
{
    const char *key = flag->key;
    const bool is_kv = strcmp(key, "engine.kv_dtype") == 0;
    if (is_kv || strcmp(key, "engine.dtype") == 0) {
        const char *word = dtype_word(text); /* --dtype has no format of eight bits */
        return is_kv                          ? server_flag_allows(flag, word) ? word : ""
               : strncmp(word, "fp8", 3) == 0 ? ""
                                              : word;
    }
    if (strcmp(key, "serving.order.policy") == 0 && w->dialect->server == SERVER_SGLANG)
        return order_word(text);
    if (strcmp(flag->name, "max_num_batched_tokens") == 0 && !*text)
        return key_text(w->root, "serving.batching.chunk_tokens");
    if (strcmp(flag->name, "chunked_prefill_size") == 0 && strcmp(text, "0") == 0)
        return "-1";
    if ((strcmp(flag->name, "preemption_mode") == 0 && strcmp(text, "swap") != 0 &&
         strcmp(text, "recompute") != 0) ||
        (strcmp(flag->name, "scheduling_policy") == 0 && strcmp(text, "priority") != 0))
        return "";
    return text;
}

/* The value of a flag that takes one, "" where it is better left out. */
static void value_of(const struct writer *w, const struct server_flag *flag, char value[64])
{
    const char *key = flag->key;
    char gpus[32];
    if (strcmp(key, "serving.kv.num_blocks") == 0) {
        put_blocks(w, value);
        return;
    }
    if (put_share(w, flag, value) || (strcmp(flag->name, "mem_fraction_static") == 0 &&
                                      !key_is(w->root, "serving.kv.sizing", "sglang")))
        return;
    const bool is_gpus = strncmp(key, "parallel.", 9) == 0 || strcmp(key, "cluster.replicas") == 0;
    const char *text = is_gpus ? gpus_of(w, flag, gpus) : word_of(w, flag, key_text(w->root, key));
    const bool is_one =
        is_gpus || strstr(key, "partial_prefills") || strstr(key, "num_scheduler_steps");
    const bool alone = strcmp(text, "1") == 0 && is_one;
    const bool none = strcmp(text, "0") == 0 && strcmp(flag->name, "swap_space") != 0;
    snprintf(value, 64, "%s", alone || none ? "" : text);
}

/* ---- flags that take no value ---- */

static void add_switch(struct writer *w, const char *name, bool on, bool dflt)
{
    char flag[64];
    if (has(w->dialect, name) && on != dflt)
        add(w, " --%s%s", on ? "" : "no-",
            server_flag_spell(name, w->dialect->server, flag) + strlen("--"));
}

/* The engine would put layers with a window or a state into blocks of their own. */
static bool has_groups(const struct writer *w)
{
    struct ifl_error wrong;
    struct model model;
    return w->dialect->v1 && model_load(key_text(w->root, "model"), &model, &wrong) == 0 &&
           model_kv_groups(&model).n_window > 0;
}

static void add_switches_vllm(struct writer *w)
{
    const bool v1 = w->dialect->v1;
    const bool hash = key_is(w->root, "serving.kv.prefix_cache", "hash");
    const bool ahead = key_is(w->root, "serving.in_flight.ahead", "1");
    add_switch(w, "enable_prefix_caching", hash, v1);
    add_switch(w, "disable_hybrid_kv_cache_manager",
               key_is(w->root, "serving.kv.windows", "hold") && has_groups(w), false);
    add_switch(w, "enable_lora", has_adapters(w->root), false);
    add_switch(w, "enable_expert_parallel", !key_is(w->root, "parallel.expert", "1"), false);
    const bool newer = w->dialect->number >= 1400;
    const bool dflt =
        newer && key_is(w->root, "parallel.pipeline", "1") && export_goes_ahead(w->root);
    add_switch(w, "async_scheduling", ahead, ahead == newer && ahead == dflt ? ahead : !ahead);
    add_switch(w, "scheduler_reserve_full_isl", key_is(w->root, "serving.admit.room_for", "prompt"),
               true);
    add_switch(w, "long_prefill_token_threshold_adaptive",
               key_is(w->root, "serving.batching.long_prefill_adapts", "true"), false);
    if (!v1)
        add(w, " --enable-chunked-prefill=%s",
            key_is(w->root, "serving.batching.policy", "mixed") ? "True" : "False");
    add_switch(w, "use_v2_block_manager",
               key_is(w->root, "serving.batching.append_rule", "touched"), false);
}

static void add_switches_sglang(struct writer *w)
{
    add_switch(w, "enable_dp_attention", !key_is(w->root, "parallel.data", "1"), false);
    add_switch(w, "disable_radix_cache", key_is(w->root, "serving.kv.prefix_cache", "none"), false);
    add_switch(w, "disable_overlap_schedule", key_is(w->root, "serving.in_flight.ahead", "0"),
               false);
    add_switch(w, "enable_mixed_chunk", key_is(w->root, "serving.batching.mixed", "true"), false);
}

/* Flags that take an object come with vLLM 0.8, tiers with engine V1. */
static void add_more(struct writer *w)
{
    const struct dialect *dialect = w->dialect;
    char words[1024];
    if (dialect->server == SERVER_VLLM && dialect->number < 800)
        return;
    export_drafts(w->root, dialect->server, words, sizeof words);
    add(w, "%s", words);
    if (dialect->server == SERVER_VLLM && !dialect->v1)
        return;
    export_tiers(w->root, dialect->server, words, sizeof words);
    add(w, "%s", words);
}

static void write_command(struct writer *w)
{
    const struct server_flags *flags = server_flags_of(w->dialect->server);
    const char *model = key_text(w->root, "model"), *checkpoint = model_checkpoint(model);
    char word[512];
    add(w, "%s %s", w->dialect->start,
        shell_word(checkpoint ? checkpoint : "MODEL", word, sizeof word));
    for (size_t i = 0; i < flags->n; i++) {
        const struct server_flag *flag = &flags->of[i];
        char value[64] = "", name[64];
        if (flag->sense != FLAG_MAPS || flag->takes != TAKES_VALUE ||
            strcmp(flag->key, "model") == 0 || !has(w->dialect, flag->name))
            continue;
        value_of(w, flag, value);
        if (*value)
            add(w, " %s %s", server_flag_spell(flag->name, w->dialect->server, name), value);
    }
    if (w->dialect->server == SERVER_VLLM)
        add_switches_vllm(w);
    else
        add_switches_sglang(w);
    if (key_is(w->root, "dtype", "fp8"))
        add(w, " --quantization fp8");
    add_more(w);
    if (w->dialect->version)
        add(w, " # version %s", w->dialect->version);
}

/* ---- what a command line does not say ---- */

static bool skip_none(const void *context, const char *dotted)
{
    (void)context;
    return strcmp(dotted, "serving.preset") == 0;
}

/* Every key of a configuration. */
static int write_keys(const struct config *config, struct node **root, struct ifl_error *error)
{
    static const struct node nowhere = {.file = (char *)"export"};
    const struct key_skip skip = {skip_none, NULL};
    *root = tree_node(NODE_MAP, &nowhere);
    return *root ? config_write(config, &skip, *root, error) : ifl_fail_nomem(error);
}

/* What a tier without a size says is of a tier that is not there. */
static bool is_no_tier(const struct node *map)
{
    static const char *const sizes[] = {"blocks", "gib", "device_ratio"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        if (!key_is(map, sizes[i], "0"))
            return false;
    return true;
}

/* The rule `memory` of serving.kv and its share are inflight's own: no server counts so. Where
 * serving.kv says how many blocks there are, nothing is counted. */
static bool is_idle_rule(const struct node *map, const char *key)
{
    return key && (strcmp(key, "sizing") == 0 || strcmp(key, "memory_utilization") == 0) &&
           key_is(map, "sizing", "memory") && *key_text(map, "num_blocks") &&
           !key_is(map, "num_blocks", "0");
}

static bool are_maps(const struct node *a, const struct node *b)
{
    return b && a->kind == NODE_MAP && b->kind == NODE_MAP;
}

static bool are_alike(const struct node *a, const struct node *b)
{
    return b && a->kind == NODE_SCALAR && b->kind == NODE_SCALAR && strcmp(a->text, b->text) == 0;
}

static bool are_as_long_lists(const struct node *a, const struct node *b)
{
    return b && a->kind == NODE_LIST && b->kind == NODE_LIST && a->n == b->n;
}

/* Keys of a server that differ, as "key=value, ...". Returns how many. */
static size_t list_differences(const struct node *a, const struct node *b, const char *where,
                               char *list, size_t n_bytes)
{
    char path[256], found[128];
    size_t n = 0;
    for (size_t i = 0; i < a->n; i++) {
        const struct node *child = a->of[i], *other = tree_child(b, child->key);
        snprintf(path, sizeof path, "%s.%s", where, child->key ? child->key : "");
        if (are_maps(child, other)) {
            if (!is_no_tier(child) || !is_no_tier(other))
                n += list_differences(child, other, path, list, n_bytes);
        } else if (are_as_long_lists(child, other)) {
            for (size_t k = 0; k < child->n; k++)
                n += list_differences(child->of[k], other->of[k], path, list, n_bytes);
        } else if (!are_alike(child, other) && !is_idle_rule(a, child->key)) {
            const size_t used = strlen(list);
            snprintf(list + used, n_bytes - used, "%s%s=%s", used ? ", " : "", path,
                     tree_describe(child, found));
            n++;
        }
    }
    return n;
}

/* Keys of what a server computes with, as list_differences has those of a map. */
static size_t list_formats(const struct node *a, const struct node *b, char *list, size_t n_bytes)
{
    static const char *const formats[] = {"engine.dtype", "engine.kv_dtype"};
    size_t n = 0;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        const size_t used = strlen(list);
        if (key_is(b, formats[i], key_text(a, formats[i])))
            continue;
        snprintf(list + used, n_bytes - used, "%s%s=%s", used ? ", " : "", formats[i],
                 key_text(a, formats[i]));
        n++;
    }
    const char *dtype = key_text(a, "dtype");
    if ((strcmp(dtype, "fp8") == 0 || strcmp(dtype, "int8") == 0 || strcmp(dtype, "int4") == 0) &&
        !key_is(b, "dtype", dtype)) {
        const size_t used = strlen(list);
        snprintf(list + used, n_bytes - used, "%sdtype=%s", used ? ", " : "", dtype);
        n++;
    }
    return n;
}

/* Reads the command line back. */
static int count_lost(const struct writer *w, char *list, size_t n_bytes, size_t *n_lost,
                      struct ifl_error *error)
{
    static const char *const maps[] = {"serving", "parallel", "cluster"};
    struct facts facts;
    struct node *back = NULL, *keys = NULL;
    struct config config = {0};
    const struct import_sources sources = {.command.text = w->line};
    int code = import_read(&sources, &facts, &back, error);
    if (code == 0)
        code = import_resolve(back, &config, error);
    if (code == 0) {
        code = write_keys(&config, &keys, error);
        config_finish(&config);
    }
    *list = '\0';
    *n_lost = 0;
    for (size_t i = 0; i < sizeof maps / sizeof *maps && code == 0; i++)
        *n_lost += list_differences(tree_child(w->root, maps[i]), tree_child(keys, maps[i]),
                                    maps[i], list, n_bytes);
    if (code == 0)
        *n_lost += list_formats(w->root, keys, list, n_bytes);
    facts_free(&facts);
    tree_free(back);
    tree_free(keys);
    return code;
}

/* ---- the best dialect ---- */

static bool speaks(const struct dialect *dialect, const struct node *root, enum server server)
{
    const char *policy = key_text(root, "serving.batching.policy");
    if (dialect->server != server)
        return false;
    if (server == SERVER_SGLANG)
        return strcmp(policy, "retracting") == 0;
    return dialect->v1 ? strcmp(policy, "unified") == 0
                       : strcmp(policy, "prefill-first") == 0 || strcmp(policy, "mixed") == 0;
}

/* The version that loses least, the newest of several. */
static int write_best(const struct node *root, enum server server, struct writer *best, char *lost,
                      size_t n_bytes, struct ifl_error *error)
{
    char list[2048];
    size_t least = SIZE_MAX, n_lost;
    for (size_t i = 0; i < N_DIALECTS; i++) {
        struct writer w = {.dialect = &dialects[i], .root = root};
        if (!speaks(&dialects[i], root, server))
            continue;
        write_command(&w);
        if (w.used >= sizeof w.line)
            return ifl_fail(error, IFL_E_INPUT, "the command line would be too long");
        if (count_lost(&w, list, sizeof list, &n_lost, error) < 0)
            return error->code;
        if (n_lost >= least)
            continue;
        least = n_lost;
        *best = w;
        snprintf(lost, n_bytes, "%s", list);
    }
    if (least == SIZE_MAX)
        return ifl_fail(error, IFL_E_INPUT, "serving.batching.policy is %s, which %s has not",
                        key_text(root, "serving.batching.policy"), server_name(server));
    return 0;
}

/* MODEL stands for a checkpoint that no table names. */
static void tell_model(const struct ifl_notes *notes, const char *model)
{
    char text[600];
    if (!*model || model_checkpoint(model) || !notes->say)
        return;
    snprintf(text, sizeof text, "MODEL stands for the checkpoint of model %.500s", model);
    notes->say(notes->context, text);
}

static void tell(const struct ifl_notes *notes, enum server server, const char *lost)
{
    char text[2200];
    if (!*lost || !notes->say)
        return;
    snprintf(text, sizeof text, "no argument of %s says %s", server_name(server), lost);
    notes->say(notes->context, text);
}

/* Reads the configuration, and writes it as a tree of all its keys. */
static int resolve(const char *path, struct node **root, struct ifl_error *error)
{
    struct node *user = NULL;
    struct config config = {0};
    int code = tree_load(path, &user, error);
    const struct node *pools = code == 0 ? tree_at(user, "cluster.pools") : NULL;
    if (pools && !tree_is_null(pools))
        code = tree_fail(pools, error,
                         "cluster.pools is set, expected one kind of replica: a command line "
                         "starts one server");
    if (code == 0)
        code = import_resolve(user, &config, error);
    if (code == 0) {
        code = write_keys(&config, root, error);
        config_finish(&config);
    }
    tree_free(user);
    return code;
}

int export_server(const char *path, enum server server, FILE *out, const struct ifl_notes *notes,
                  struct ifl_error *error)
{
    struct node *root = NULL;
    struct writer best = {0};
    char lost[2048] = "", profile[512];
    int code = resolve(path, &root, error);
    if (code == 0 && *key_text(root, "model"))
        code = data_resolve("models", key_text(root, "model"), profile, error);
    if (code == 0)
        code = write_best(root, server, &best, lost, sizeof lost, error);
    if (code == 0) {
        fprintf(out, "%s\n", best.line);
        tell_model(notes, key_text(root, "model"));
        tell(notes, server, lost);
    } else {
        ifl_blame_file(error, path);
    }
    tree_free(root);
    return code;
}
