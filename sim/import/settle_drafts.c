/* Sets serving.draft and serving.speculation, as the presets vllm-v1-ngram, vllm-v1-eagle,
 * sglang-eagle and sglang-eagle-adaptive have them. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "import/names.h"
#include "import/objects.h"
#include "import/settle.h"

#define ACCEPTANCE "how many guesses hold is a property of text and models: inflight's default"

/* What guesses, and the layers of a head. */
struct method {
    const char *name, *policy, *proposer;
    int layers;
    bool goes_ahead;  /* vLLM: with asynchronous scheduling by default */
    bool looks_ahead; /* vLLM's V1: with lookahead slots (use_eagle, uses_draft_model) */
};

/* In letters of either case; `part` is in small ones. */
static bool contains(const char *text, const char *part)
{
    const size_t n = strlen(part);
    for (; *text; text++)
        if (strncasecmp(text, part, n) == 0)
            return true;
    return false;
}

/* model: as the server calls a draft model. */
static void put_proposer(struct settled *s, const struct method *method, const char *model)
{
    settle_put(s, "serving.speculation.proposer", "%s", method->proposer);
    if (strcmp(method->proposer, "model") == 0)
        settle_put(s, "serving.speculation.model", "%s", model_profile(model));
    if (strcmp(method->proposer, "head") == 0)
        settle_put(s, "serving.speculation.layers", "%d", method->layers);
}

/* ---- vLLM (vllm/config/speculative.py of 0.8.5 to 0.33.0, spec_decode of 0.6 and 0.7) ---- */

static const char *const vllm_names[] = {"speculative_config",
                                         "speculative_method",
                                         "speculative_model",
                                         "num_speculative_tokens",
                                         "ngram_prompt_lookup_max",
                                         "ngram_prompt_lookup_min",
                                         "speculative_disable_by_batch_size",
                                         NULL};

static const struct method vllm_methods[] = {
    {"ngram", "ngram", "lookup", 0, false, false},
    {"ngram_gpu", "ngram", "lookup", 0, true, false},
    {"eagle", "fixed", "head", 1, true, true},
    {"eagle3", "fixed", "head", 1, true, true},
    {"mtp", "fixed", "head", 1, true, true},
    {"medusa", "fixed", "head", 0, false, false},
    {"draft_model", "fixed", "model", 0, false, true},
};

/* Members of --speculative-config and flat flags alike, by the names of the former; NULL: none. */
static json_t *vllm_drafts(const struct facts *facts)
{
    static const char *const flat[][2] = {
        {"speculative_method", "method"},
        {"speculative_model", "model"},
        {"num_speculative_tokens", "num_speculative_tokens"},
        {"ngram_prompt_lookup_max", "prompt_lookup_max"},
        {"ngram_prompt_lookup_min", "prompt_lookup_min"},
        {"speculative_disable_by_batch_size", "disable_by_batch_size"}};
    json_t *drafts = object_of(facts, "speculative_config");
    for (size_t i = 0; i < sizeof flat / sizeof *flat; i++) {
        const char *text = facts_text(facts, flat[i][0]);
        if (text && !drafts)
            drafts = json_object();
        if (text && !json_object_get(drafts, flat[i][1]))
            json_object_set_new(drafts, flat[i][1], json_string(text));
    }
    /* as the log prints it */
    json_t *printed = json_object_get(drafts, "num_spec_tokens");
    if (printed && !json_object_get(drafts, "num_speculative_tokens"))
        json_object_set(drafts, "num_speculative_tokens", printed);
    return drafts;
}

/* A model alone says by its name what it is; any other is a draft model. */
static const char *method_name(const json_t *drafts)
{
    const char *method = object_text(drafts, "method"), *model = object_text(drafts, "model");
    const size_t n = method ? strlen(method) : 0;
    if (method)
        return n > 4 && strcmp(method + n - 4, "_mtp") == 0 ? "mtp"
               : strcmp(method, "[ngram]") == 0             ? "ngram"
                                                            : method;
    return !model                                                         ? NULL
           : strcmp(model, "[ngram]") == 0 || strcmp(model, "ngram") == 0 ? "ngram"
           : contains(model, "eagle3")                                    ? "eagle3"
           : contains(model, "eagle-")                                    ? "eagle"
           : contains(model, "medusa")                                    ? "medusa"
                                                                          : "draft_model";
}

static const struct method *vllm_method(const json_t *drafts)
{
    const char *name = method_name(drafts);
    for (size_t i = 0; name && i < sizeof vllm_methods / sizeof *vllm_methods; i++)
        if (strcmp(vllm_methods[i].name, name) == 0)
            return &vllm_methods[i];
    return NULL;
}

bool drafts_go_ahead(const struct settled *s)
{
    json_t *drafts = vllm_drafts(s->facts);
    const struct method *method = vllm_method(drafts);
    const bool ahead = !method_name(drafts) ||
                       (method && method->goes_ahead &&
                        !json_is_true(json_object_get(drafts, "disable_padded_drafter_batch")));
    json_decref(drafts);
    return ahead;
}

/* Why these guesses cannot be had; NULL: they can. */
static const char *vllm_against(struct settled *s, const json_t *drafts,
                                const struct method *method)
{
    const char *model = object_text(drafts, "model");
    if (!method_name(drafts))
        return "speculative decoding: neither a method nor a model is named";
    if (!method)
        return "speculative decoding with a method that serving.draft and serving.speculation "
               "do not have";
    if (object_count(drafts, "num_speculative_tokens", 0) < 1 && strcmp(method->name, "mtp") != 0)
        return "speculative decoding: num_speculative_tokens is missing";
    if (settle_number(s, "pipeline_parallel_size", 1) > 1)
        return "speculative decoding in a pipeline";
    if (strcmp(method->proposer, "model") == 0 && (!model || !model_profile(model)))
        return "speculative decoding: no model of configs/models has the draft model's name";
    return NULL;
}

/* [[1, 8, 5], [9, 32, 3]]: from 1 to 8 requests 5 guesses. V0's disable_by_batch_size is one
 * request more than guess (spec_decode_worker.py). False: there is no such table. */
static bool batch_table(struct settled *s, const json_t *drafts, bool v1, char *table,
                        size_t n_bytes)
{
    const json_t *rows = json_object_get(drafts, "num_speculative_tokens_per_batch_size"), *row;
    const long long none_from = object_count(drafts, "disable_by_batch_size", 0);
    const long long tokens = object_count(drafts, "num_speculative_tokens", 1);
    size_t i;
    *table = '\0';
    json_array_foreach(rows, i, row)
    {
        const size_t used = strlen(table);
        if (json_array_size(row) != 3 || used > n_bytes - 64)
            settle_fail(s, "speculative_config",
                        "num_speculative_tokens_per_batch_size has a row of %zu numbers or too "
                        "many rows, expected the first and the last number of requests and the "
                        "guesses in each",
                        json_array_size(row));
        snprintf(table + used, n_bytes - used, "%s%lld-%lld:%lld", used ? "," : "",
                 json_integer_value(json_array_get(row, 0)),
                 json_integer_value(json_array_get(row, 1)),
                 json_integer_value(json_array_get(row, 2)));
    }
    if (!*table && !v1 && none_from > 1)
        snprintf(table, n_bytes, "1-%lld:%lld,%lld-:0", none_from - 1, tokens, none_from);
    return *table;
}

static void put_vllm(struct settled *s, const json_t *drafts, const struct method *method, bool v1)
{
    const long long tokens = object_count(drafts, "num_speculative_tokens", 1);
    const double most = object_number(drafts, "prompt_lookup_max", 0);
    const double least = object_number(drafts, "prompt_lookup_min", 0);
    char table[256];
    const bool by_batch = batch_table(s, drafts, v1, table, sizeof table);
    settle_put(s, "serving.draft.policy", "%s", by_batch ? "by-batch" : method->policy);
    settle_put(s, "serving.draft.tokens", "%lld", tokens);
    if (by_batch)
        settle_put(s, "serving.draft.table", "\"%s\"", table);
    put_proposer(s, method, object_text(drafts, "model"));
    if (strcmp(method->proposer, "model") == 0 && v1)
        settle_put(s, "serving.batching.draft_input_tokens", "1");
    if (json_is_true(json_object_get(drafts, "parallel_drafting")))
        settle_put(s, "serving.speculation.passes", "1");
    settle_put(s, "serving.speculation.lookahead_tokens", v1 && method->looks_ahead ? "-1" : "0");
    settle_put(s, "serving.speculation.prompts_look_ahead", v1 ? "true" : "false");
    if (most > 0 || least > 0) { /* one of them is the other's default */
        settle_put(s, "serving.speculation.longest_match", "%.15g", most > 0 ? most : least);
        settle_put(s, "serving.speculation.shortest_match", "%.15g",
                   least > 0 ? least
                   : v1      ? most
                             : 1);
    }
}

static const struct member {
    const char *name, *key, *against;
} members[] = {
    {"method", "serving.draft.policy", NULL},
    {"model", "serving.speculation.proposer", NULL},
    {"num_speculative_tokens", "serving.draft.tokens", NULL},
    {"num_spec_tokens", "serving.draft.tokens", NULL},
    {"num_speculative_tokens_per_batch_size", "serving.draft.table", NULL},
    {"prompt_lookup_max", "serving.speculation.longest_match", NULL},
    {"prompt_lookup_min", "serving.speculation.shortest_match", NULL},
    {"parallel_drafting", "serving.speculation.passes", NULL},
    {"disable_padded_drafter_batch", "serving.in_flight.ahead", NULL},
    {"disable_by_batch_size", "serving.draft.table", NULL},
    {"draft_tensor_parallel_size", NULL, "a draft model on fewer GPUs than the model"},
    {"quantization", NULL, "a quantised draft model"},
    {"max_model_len", NULL, "sequences too long for the draft model"},
};

/* What has become of a member of --speculative-config. */
static struct finding judge_member(struct settled *s, const json_t *object, const char *name,
                                   bool v1)
{
    const struct member *member = members, *end = members + sizeof members / sizeof *members;
    while (member < end && strcmp(member->name, name) != 0)
        member++;
    if (member == end)
        return (struct finding){.kind = FOUND_UNKNOWN};
    if (v1 && strcmp(name, "disable_by_batch_size") == 0)
        return (struct finding){.kind = FOUND_UNMODELLED,
                                .says = "engine V1 goes by num_speculative_tokens_per_batch_size"};
    if (member->key)
        return (struct finding){.kind = FOUND_MAPS, .key = member->key};
    if (strcmp(name, "draft_tensor_parallel_size") == 0 &&
        object_count(object, name, 0) == settle_number(s, "tensor_parallel_size", 1))
        return (struct finding){.kind = FOUND_HARMLESS};
    return (struct finding){.kind = FOUND_UNMODELLED, .says = member->against};
}

/* A line of the report for each member of --speculative-config. */
static void report_members(struct settled *s, bool v1)
{
    const struct fact *fact = facts_get(s->facts, "speculative_config");
    json_t *object = object_of(s->facts, "speculative_config"), *value;
    const char *name;
    json_object_foreach(object, name, value)
    {
        char what[256], *text = json_dumps(value, JSON_ENCODE_ANY);
        const char *plain = json_string_value(value);
        const struct finding f = judge_member(s, object, name, v1);
        snprintf(what, sizeof what, "speculative_config: %s=%s", name,
                 plain  ? plain
                 : text ? text
                        : "");
        if (!json_is_null(value))
            settle_find(s, f.kind, fact->at, what, f.key, f.says);
        free(text);
    }
    json_decref(object);
}

void settle_drafts_vllm(struct settled *s, bool v1)
{
    json_t *drafts = vllm_drafts(s->facts);
    const struct method *method = vllm_method(drafts);
    const char *against = drafts ? vllm_against(s, drafts, method) : NULL;
    if (!drafts)
        settle_decide(s, vllm_names, FOUND_UNMODELLED, NULL,
                      "speculative decoding: this is no object");
    else if (against)
        settle_decide(s, vllm_names, FOUND_UNMODELLED, NULL, against);
    else {
        put_vllm(s, drafts, method, v1);
        report_members(s, v1);
        settle_assume(s, "serving.speculation.acceptance", "0.7", ACCEPTANCE);
        if (s->code == 0 && strcmp(method->policy, "ngram") == 0 &&
            strcmp(tree_text(tree_at(s->root, "serving.draft.policy")), "ngram") == 0)
            settle_assume(s, "serving.draft.match_frac", "1",
                          "how often a look-up finds something: inflight's default");
        if (strcmp(method->name, "mtp") == 0 && !json_object_get(drafts, "num_speculative_tokens"))
            settle_find(s, FOUND_ASSUMED, (struct place){0}, "", "serving.draft.tokens",
                        "one layer for predicting tokens (n_predict)");
    }
    json_decref(drafts);
}

/* ---- SGLang (python/sglang/srt/server_args.py, speculative) ---- */

static const char *const sglang_names[] = {"speculative_algorithm",
                                           "speculative_num_steps",
                                           "speculative_eagle_topk",
                                           "speculative_num_draft_tokens",
                                           "speculative_draft_model_path",
                                           "speculative_adaptive",
                                           NULL};

static const struct method sglang_methods[] = {
    {"EAGLE", "fixed", "head", 1, false, false},
    {"EAGLE3", "fixed", "head", 1, false, false},
    {"NEXTN", "fixed", "head", 1, false, false},
    {"NGRAM", "ngram", "lookup", 0, false, false},
    {"STANDALONE", "fixed", "model", 0, false, false},
};

/* Depth, branches and nodes of the tree. */
struct tree_shape {
    long long steps, branches, nodes;
    bool is_default;
};

/* _auto_choose_speculative_params: by the architecture, which the model's name tells. With one
 * branch there are as many nodes as steps, and the root. */
static struct tree_shape sglang_shape(struct settled *s, const struct method *method)
{
    const char *model = facts_text(s->facts, "model_path");
    const bool wide =
        method->layers > 0 && model &&
        (contains(model, "llama") || contains(model, "vicuna") || contains(model, "grok"));
    struct tree_shape t = {.steps = settle_number(s, "speculative_num_steps", 0),
                           .branches = settle_number(s, "speculative_eagle_topk", 0),
                           .nodes = settle_number(s, "speculative_num_draft_tokens", 0)};
    if (facts_true(s->facts, "speculative_adaptive", false))
        return (struct tree_shape){3, 1, 4, false};
    if (strcmp(method->proposer, "lookup") == 0) {
        t.is_default = t.nodes == 0;
        t.nodes = t.nodes > 0 ? t.nodes : 12;
        return (struct tree_shape){t.nodes, 1, t.nodes, t.is_default};
    }
    if (t.steps == 0 && t.branches == 0 && t.nodes == 0)
        return wide ? (struct tree_shape){5, 4, 8, true} : (struct tree_shape){3, 1, 4, true};
    t.branches = t.branches > 0 ? t.branches : 1;
    t.steps = t.steps > 0 ? t.steps : t.nodes > 1 ? t.nodes - 1 : 3;
    t.nodes = t.branches == 1 || t.nodes == 0 ? t.steps + 1 : t.nodes;
    return t;
}

static const char *sglang_against(struct settled *s, const struct method *method)
{
    const char *model = facts_text(s->facts, "speculative_draft_model_path");
    if (!method)
        return "speculative decoding with an algorithm that serving.draft and serving.speculation "
               "do not have";
    if (settle_number(s, "pp_size", 1) > 1)
        return "speculative decoding in a pipeline";
    if (strcmp(method->proposer, "model") == 0 && (!model || !model_profile(model)))
        return "speculative decoding: no model of configs/models has the draft model's name";
    return NULL;
}

/* As sglang-eagle.yaml says. A tree has an acceptance of as many places as steps. */
static void put_sglang(struct settled *s, const struct method *method, struct tree_shape t)
{
    const bool adaptive = facts_true(s->facts, "speculative_adaptive", false);
    const long long most = t.steps * t.branches > t.nodes ? t.steps * t.branches : t.nodes;
    char acceptance[256] = "0.7", *end = acceptance + strlen(acceptance);
    settle_put(s, "serving.draft.policy", "%s", adaptive ? "adaptive" : method->policy);
    settle_put(s, "serving.draft.tokens", "%lld", adaptive ? 7 : t.nodes - 1);
    put_proposer(s, method, facts_text(s->facts, "speculative_draft_model_path"));
    if (t.branches > 1) {
        settle_put(s, "serving.speculation.passes", "%lld", t.steps);
        settle_put(s, "serving.speculation.width", "%lld", t.branches);
        for (long long i = 1; i < t.steps && i < 60; i++)
            end = stpcpy(end, ",0.7");
    }
    settle_put(s, "serving.speculation.lookahead_tokens", "%lld", 2 * most - t.nodes);
    settle_put(s, "serving.speculation.prompts_look_ahead", "false");
    settle_assume(s, "serving.speculation.acceptance", acceptance, ACCEPTANCE);
    if (t.is_default)
        settle_find(s, FOUND_ASSUMED, (struct place){0}, "", "serving.draft.tokens",
                    t.branches > 1 ? "SGLang's default for Llama and Grok: 5 steps, 4 branches, 8 "
                                     "draft tokens"
                                   : "SGLang's default");
    if (strcmp(method->policy, "ngram") == 0)
        settle_assume(s, "serving.draft.match_frac", "1",
                      "how often a look-up finds something: inflight's default; its tree is one "
                      "chain here");
}

bool settle_drafts_sglang(struct settled *s)
{
    const char *name = facts_text(s->facts, "speculative_algorithm");
    const struct method *method = NULL;
    for (size_t i = 0; name && i < sizeof sglang_methods / sizeof *sglang_methods; i++)
        if (strcasecmp(sglang_methods[i].name, name) == 0)
            method = &sglang_methods[i];
    const char *against = name ? sglang_against(s, method) : NULL;
    if (!name)
        settle_decide(s, sglang_names, FOUND_HARMLESS, NULL, NULL);
    else if (against)
        settle_decide(s, sglang_names, FOUND_UNMODELLED, NULL, against);
    if (!name || against)
        return false;
    put_sglang(s, method, sglang_shape(s, method));
    if (!facts_true(s->facts, "speculative_adaptive", false))
        facts_decide(s->facts, "speculative_adaptive", FOUND_HARMLESS, NULL, NULL);
    /* a head's weights; a head is of the model's size */
    if (strcmp(method->proposer, "model") != 0)
        facts_decide(s->facts, "speculative_draft_model_path", FOUND_HARMLESS, NULL, NULL);
    return true;
}
