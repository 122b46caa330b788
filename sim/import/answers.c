#include "import/answers.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/prometheus.h"

static const double MOST_TOKENS = 1e15;

/* ---- /metrics ---- */

/* What vLLM's cache_config_info calls otherwise than the command line does. */
static const char *flag_of_label(const char *label)
{
    return strcmp(label, "cache_dtype") == 0 ? "kv_cache_dtype" : label;
}

static int take_blocks(const struct sample_label *label, struct place at, struct facts *facts,
                       struct ifl_error *error)
{
    char written[320];
    snprintf(written, sizeof written, "%s=%s", label->name, label->value);
    const int rc = facts_say(facts, "num_gpu_blocks", label->value, at, false, error);
    return rc < 0
               ? rc
               : facts_find(facts, FOUND_MAPS, at, written, "serving.kv.num_blocks", NULL, error);
}

/* 1: the label says something that a key says. */
static int take_label(const struct sample_label *label, struct place at, struct facts *facts,
                      struct ifl_error *error)
{
    char written[320];
    if (strcmp(label->name, "num_gpu_blocks") == 0 && strcmp(label->value, "None") != 0)
        return take_blocks(label, at, facts, error) < 0 ? error->code : 1;
    const struct server_flag *flag =
        server_flag_find(SERVER_VLLM, flag_of_label(label->name), false);
    const bool maps = flag && flag->sense == FLAG_MAPS;
    /* what a command line may ask for, and this server was not asked for */
    if (!maps || strcmp(label->value, "None") == 0)
        return 0;
    snprintf(written, sizeof written, "%s=%s", label->name, label->value);
    return facts_argument(facts, flag, label->value, written, at, true, error) < 0 ? error->code
                                                                                   : 1;
}

/* The labels of vLLM's cache_config_info are the settings of its K/V. */
static int take_cache_config(const struct sample *sample, struct place at, struct facts *facts,
                             struct ifl_error *error)
{
    struct sample_label label;
    const char *next = NULL;
    char text[80];
    int n_other = 0, rc = 0;
    while (rc >= 0 && sample_label_next(sample, &next, &label)) {
        rc = take_label(&label, at, facts, error);
        n_other += rc == 0;
    }
    snprintf(text, sizeof text, "cache_config_info: %d other labels", n_other);
    return rc < 0 ? rc : facts_find(facts, FOUND_HARMLESS, at, text, NULL, NULL, error);
}

/* SGLang's count of tokens of K/V, as its log has it. From a million on, a gauge is written
 * "1.707904e+06" (floatToGoString of prometheus_client's utils.py). */
static int take_tokens(const struct sample *sample, struct place at, struct facts *facts,
                       struct ifl_error *error)
{
    char text[32], value[32], written[96], *end;
    snprintf(text, sizeof text, "%.*s", (int)sample->n_value, sample->value);
    const double tokens = strtod(text, &end);
    if (end == text || *end || !(tokens >= 1 && tokens < MOST_TOKENS))
        return facts_fail(at, error, "max_total_num_tokens is %.30s, expected a count of tokens",
                          text);
    snprintf(value, sizeof value, "%.0f", tokens);
    snprintf(written, sizeof written, "max_total_num_tokens=%s", value);
    const int rc = facts_say(facts, "num_tokens", value, at, false, error);
    return rc < 0
               ? rc
               : facts_find(facts, FOUND_MAPS, at, written, "serving.kv.num_blocks", NULL, error);
}

static bool begins(const struct sample *sample, const char *prefix)
{
    const size_t n = strlen(prefix);
    return sample->n_name >= n && memcmp(sample->name, prefix, n) == 0;
}

static int take_sample(const struct sample *sample, struct place at, struct facts *facts,
                       struct ifl_error *error)
{
    int rc = 0;
    if (begins(sample, "vllm:"))
        rc = facts_set_server(facts, SERVER_VLLM, at, error);
    if (begins(sample, "sglang:"))
        rc = facts_set_server(facts, SERVER_SGLANG, at, error);
    if (rc == 0 && sample_is(sample, "vllm:cache_config_info"))
        rc = take_cache_config(sample, at, facts, error);
    if (rc == 0 && sample_is(sample, "sglang:max_total_num_tokens"))
        rc = take_tokens(sample, at, facts, error);
    return rc;
}

static int read_metrics(const struct import_answer *answer, struct facts *facts,
                        struct ifl_error *error)
{
    struct place at = {answer->name, 1};
    const char *next = answer->text, *counted = answer->text;
    struct sample sample;
    size_t n_samples = 0;
    int rc = 0;
    while (rc == 0 && sample_next(&next, answer->text + answer->n, &sample)) {
        for (; counted < sample.name; counted++)
            at.line += *counted == '\n';
        rc = take_sample(&sample, at, facts, error);
        n_samples++;
    }
    return rc == 0 && n_samples == 0
               ? ifl_fail_at(error, answer->name, 0, 0,
                             "no sample, expected what a server says at /metrics, /version or "
                             "/v1/models")
               : rc;
}

/* ---- JSON ---- */

/* A member of an answer that says what the server's argument does. */
static int take_argument(const char *member, const char *name, const char *value, struct place at,
                         struct facts *facts, struct ifl_error *error)
{
    char written[320];
    const struct server_flag *flag = server_flag_find(facts->server, name, false);
    snprintf(written, sizeof written, "%s=%.200s", member, value);
    return flag ? facts_argument(facts, flag, value, written, at, false, error) : 0;
}

/* The list of models: the server, where its model is from, and how long a request may be. */
static int read_models(const json_t *model, struct place at, struct facts *facts,
                       struct ifl_error *error)
{
    const char *owner = json_string_value(json_object_get(model, "owned_by"));
    const char *path = json_string_value(json_object_get(model, "root"));
    const json_t *length = json_object_get(model, "max_model_len");
    char text[32];
    int rc = 0;
    if (owner && strcmp(owner, "vllm") == 0)
        rc = facts_set_server(facts, SERVER_VLLM, at, error);
    if (rc == 0 && owner && strcmp(owner, "sglang") == 0)
        rc = facts_set_server(facts, SERVER_SGLANG, at, error);
    if (rc < 0 || !facts->has_server)
        return rc;
    if (path)
        rc = take_argument("model", "model", path, at, facts, error);
    snprintf(text, sizeof text, "%lld", (long long)json_integer_value(length));
    return rc == 0 && json_is_integer(length)
               ? take_argument("max_model_len",
                               facts->server == SERVER_SGLANG ? "context_length" : "max_model_len",
                               text, at, facts, error)
               : rc;
}

static int read_json(const struct import_answer *answer, struct facts *facts,
                     struct ifl_error *error)
{
    const struct place at = {answer->name, 1};
    json_error_t wrong;
    json_t *root = json_loadb(answer->text, answer->n, 0, &wrong);
    if (!root)
        return ifl_fail_at(error, answer->name, wrong.line, wrong.column, "%.200s", wrong.text);
    const char *version = json_string_value(json_object_get(root, "version"));
    const json_t *model = json_array_get(json_object_get(root, "data"), 0);
    int rc = 0;
    if (version)
        rc = facts_say(facts, "version", version, at, false, error);
    else if (json_is_object(model))
        rc = read_models(model, at, facts, error);
    else
        rc = ifl_fail_at(error, answer->name, 1, 1,
                         "neither a version nor a list of models, expected what a server says at "
                         "/metrics, /version or /v1/models");
    json_decref(root);
    return rc;
}

int answer_read(const struct import_answer *answer, struct facts *facts, struct ifl_error *error)
{
    size_t at = 0;
    while (at < answer->n && strchr(" \t\r\n", answer->text[at]))
        at++;
    return at < answer->n && answer->text[at] == '{' ? read_json(answer, facts, error)
                                                     : read_metrics(answer, facts, error);
}
