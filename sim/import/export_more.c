#include "import/export_more.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "import/names.h"

const char *key_text(const struct node *root, const char *key)
{
    static const char admit[] = "serving.admit.";
    const char *text = tree_text(tree_at(root, key));
    const struct node *list = tree_at(root, "serving.admit");
    if (!text && strncmp(key, admit, strlen(admit)) == 0 && list && list->kind == NODE_LIST)
        text = tree_text(tree_child(list->of[list->n - 1], key + strlen(admit)));
    return text ? text : "";
}

bool key_is(const struct node *root, const char *key, const char *text)
{
    return strcmp(key_text(root, key), text) == 0;
}

static double number_at(const struct node *root, const char *key)
{
    return strtod(key_text(root, key), NULL);
}

static long long count_at(const struct node *root, const char *key)
{
    return atoll(key_text(root, key));
}

const char *shell_word(const char *text, char *word, size_t n_bytes)
{
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                "0123456789_./:@%+=,-";
    if (*text && !text[strspn(text, plain)])
        return text;
    size_t used = (size_t)snprintf(word, n_bytes, "'");
    for (; *text && used + 8 < n_bytes; text++)
        used +=
            (size_t)snprintf(word + used, n_bytes - used, *text == '\'' ? "'\\''" : "%c", *text);
    snprintf(word + used, n_bytes - used, "'");
    return word;
}

/* "--flag '{...}'" */
static void add_object(const char *flag, json_t *object, char *words, size_t n_bytes)
{
    const size_t used = strlen(words);
    char word[1024], *text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(15));
    snprintf(words + used, n_bytes - used, " %s %s", flag,
             shell_word(text ? text : "{}", word, sizeof word));
    free(text);
    json_decref(object);
}

/* ---- guesses ---- */

/* Of a head no profile knows the checkpoint: a word that stands for it, as MODEL does. */
static const char *draft_model(const struct node *root)
{
    if (!key_is(root, "serving.speculation.proposer", "model"))
        return "DRAFT_MODEL";
    const char *model = key_text(root, "serving.speculation.model");
    const char *checkpoint = model_checkpoint(model);
    return checkpoint ? checkpoint : model;
}

/* "1-8:5,9-32:3" as [[1,8,5],[9,32,3]]; a range without an end ends with the seats. */
static json_t *table_rows(const struct node *root)
{
    json_t *rows = json_array();
    for (const char *at = key_text(root, "serving.draft.table"); at && *at;) {
        char *end;
        const long long from = strtoll(at, &end, 10);
        const char *to_at = end + (*end == '-');
        long long to = strtoll(to_at, &end, 10);
        if (end == to_at)
            to = count_at(root, "serving.batching.max_seqs");
        json_array_append_new(rows, json_pack("[I, I, I]", (json_int_t)from, (json_int_t)to,
                                              (json_int_t)atoll(end + (*end == ':'))));
        at = strchr(end, ',');
        at += at != NULL;
    }
    return rows;
}

static const char *vllm_method(const struct node *root)
{
    const char *proposer = key_text(root, "serving.speculation.proposer");
    const bool ngram = key_is(root, "serving.draft.policy", "ngram");
    const bool fixed = key_is(root, "serving.draft.policy", "fixed") ||
                       key_is(root, "serving.draft.policy", "by-batch");
    if (strcmp(proposer, "lookup") == 0)
        return ngram || key_is(root, "serving.draft.policy", "by-batch") ? "ngram" : NULL;
    if (!fixed)
        return NULL;
    return strcmp(proposer, "model") == 0                    ? "draft_model"
           : key_is(root, "serving.speculation.layers", "0") ? "medusa"
                                                             : "eagle3";
}

bool export_goes_ahead(const struct node *root)
{
    const char *method = key_is(root, "serving.draft.policy", "none") ? NULL : vllm_method(root);
    return !method || strcmp(method, "eagle3") == 0;
}

static void drafts_vllm(const struct node *root, char *words, size_t n_bytes)
{
    const char *method = vllm_method(root);
    const long long longest = count_at(root, "serving.speculation.longest_match");
    const long long shortest = count_at(root, "serving.speculation.shortest_match");
    if (!method)
        return;
    json_t *object = json_pack("{s: s, s: I}", "method", method, "num_speculative_tokens",
                               (json_int_t)count_at(root, "serving.draft.tokens"));
    if (strcmp(method, "ngram") != 0)
        json_object_set_new(object, "model", json_string(draft_model(root)));
    if (strcmp(method, "ngram") == 0 && (longest != 5 || shortest != 5)) {
        json_object_set_new(object, "prompt_lookup_max", json_integer(longest));
        json_object_set_new(object, "prompt_lookup_min", json_integer(shortest));
    }
    if (key_is(root, "serving.draft.policy", "by-batch"))
        json_object_set_new(object, "num_speculative_tokens_per_batch_size", table_rows(root));
    if (key_is(root, "serving.speculation.passes", "1"))
        json_object_set_new(object, "parallel_drafting", json_true());
    add_object("--speculative-config", object, words, n_bytes);
}

static void drafts_sglang(const struct node *root, char *words, size_t n_bytes)
{
    char word[512];
    const char *draft = shell_word(draft_model(root), word, sizeof word);
    const char *proposer = key_text(root, "serving.speculation.proposer");
    const bool fixed = key_is(root, "serving.draft.policy", "fixed");
    const long long tokens = count_at(root, "serving.draft.tokens");
    const long long passes = count_at(root, "serving.speculation.passes");
    if (key_is(root, "serving.draft.policy", "adaptive") && strcmp(proposer, "head") == 0)
        snprintf(words, n_bytes,
                 " --speculative-algorithm EAGLE --speculative-draft-model-path %s "
                 "--speculative-adaptive",
                 draft);
    else if (key_is(root, "serving.draft.policy", "ngram") && strcmp(proposer, "lookup") == 0)
        snprintf(words, n_bytes,
                 " --speculative-algorithm NGRAM --speculative-num-draft-tokens %lld", tokens + 1);
    else if (fixed && strcmp(proposer, "lookup") != 0)
        snprintf(words, n_bytes,
                 " --speculative-algorithm %s --speculative-draft-model-path %s "
                 "--speculative-num-steps %lld --speculative-eagle-topk %s "
                 "--speculative-num-draft-tokens %lld",
                 strcmp(proposer, "head") == 0 ? "EAGLE3" : "STANDALONE", draft,
                 passes > 0 ? passes : tokens, key_text(root, "serving.speculation.width"),
                 tokens + 1);
}

void export_drafts(const struct node *root, enum server server, char *words, size_t n_bytes)
{
    *words = '\0';
    if (key_is(root, "serving.draft.policy", "none"))
        return;
    if (server == SERVER_SGLANG)
        drafts_sglang(root, words, n_bytes);
    else
        drafts_vllm(root, words, n_bytes);
}

/* ---- tiers ---- */

#define HOST "serving.kv.tiers.host."

static const double bytes_a_gib = 1024.0 * 1024.0 * 1024.0;

/* LMCache counts the GiB of a GPU. */
static json_t *lmcache(const struct node *root)
{
    const double gpus = number_at(root, "parallel.tensor") * number_at(root, "parallel.pipeline");
    const long long unit = count_at(root, HOST "unit_tokens");
    json_t *extra =
        json_pack("{s: f}", "lmcache.max_local_cpu_size", number_at(root, HOST "gib") / gpus);
    if (unit != 256)
        json_object_set_new(extra, "lmcache.chunk_size", json_integer(unit));
    return extra;
}

static json_t *offloading(const struct node *root)
{
    const long long block = count_at(root, "serving.kv.block_tokens");
    const long long unit = count_at(root, HOST "unit_tokens");
    const long long blocks = count_at(root, HOST "blocks");
    const long long after = count_at(root, HOST "store_after");
    json_t *extra = json_object();
    if (blocks > 0)
        json_object_set_new(extra, "num_cpu_blocks",
                            json_integer(unit > block ? blocks * block / unit : blocks));
    else
        json_object_set_new(
            extra, "cpu_bytes_to_use",
            json_integer((json_int_t)llround(number_at(root, HOST "gib") * bytes_a_gib)));
    if (unit > block)
        json_object_set_new(extra, "block_size", json_integer(unit));
    if (after > 1)
        json_object_set_new(extra, "store_threshold", json_integer(after));
    return extra;
}

static void tiers_vllm(const struct node *root, char *words, size_t n_bytes)
{
    const bool is_lmcache = key_is(root, HOST "loads", "before");
    const bool is_apart = key_is(root, HOST "loads", "apart");
    const double size_gib = number_at(root, HOST "gib");
    if ((is_lmcache && size_gib > 0) ||
        (is_apart && (size_gib > 0 || count_at(root, HOST "blocks") > 0)))
        add_object("--kv-transfer-config",
                   json_pack("{s: s, s: s, s: o}", "kv_connector",
                             is_lmcache ? "LMCacheConnectorV1" : "OffloadingConnector", "kv_role",
                             "kv_both", "kv_connector_extra_config",
                             is_lmcache ? lmcache(root) : offloading(root)),
                   words, n_bytes);
}

static void tiers_sglang(const struct node *root, char *words, size_t n_bytes)
{
    const double ratio = number_at(root, HOST "device_ratio");
    const double size_gb =
        number_at(root, HOST "gib") * bytes_a_gib / 1e9 / number_at(root, "parallel.tensor");
    const bool is_back = key_is(root, HOST "stores", "evicted");
    if (ratio > 0 || size_gb > 0)
        snprintf(words, n_bytes,
                 " --enable-hierarchical-cache --hicache-%s %.15g --hicache-write-policy %s",
                 ratio > 0 ? "ratio" : "size", ratio > 0 ? ratio : size_gb,
                 is_back                                  ? "write_back"
                 : count_at(root, HOST "store_after") > 1 ? "write_through_selective"
                                                          : "write_through");
}

void export_tiers(const struct node *root, enum server server, char *words, size_t n_bytes)
{
    *words = '\0';
    if (server == SERVER_SGLANG)
        tiers_sglang(root, words, n_bytes);
    else
        tiers_vllm(root, words, n_bytes);
}
