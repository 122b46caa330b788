#include "live/replay_body.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* What an extra puts: the JSON behind its first '=', or the text if that is none. */
static json_t *extra_value(const char *extra)
{
    const char *value = strchr(extra, '=') + 1;
    json_t *json = json_loads(value, JSON_DECODE_ANY, NULL);
    return json ? json : json_string(value);
}

/* True for a key without which this would be no load client's request. */
static bool is_made_here(const char *extra)
{
    static const char *const keys[] = {"prompt", "messages", "model", "stream", "max_tokens"};
    const size_t n = strcspn(extra, "=");
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (strlen(keys[i]) == n && memcmp(keys[i], extra, n) == 0)
            return true;
    return false;
}

int replay_body_check(const struct replay_body *body, struct ifl_error *error)
{
    for (size_t i = 0; i < body->n_extra; i++)
        if (is_made_here(body->extra[i]))
            return ifl_fail(error, IFL_E_INPUT,
                            "--body %s: expected another key: this one is made "
                            "for each request",
                            body->extra[i]);
    for (size_t i = 0; i < body->n_extra; i++) {
        const char *equals = strchr(body->extra[i], '=');
        json_t *value = equals && equals != body->extra[i] ? extra_value(body->extra[i]) : NULL;
        if (!value)
            return ifl_fail(error, IFL_E_INPUT,
                            "--body %s: expected KEY=VALUE, the value in JSON or a word",
                            body->extra[i]);
        json_decref(value);
    }
    return 0;
}

static json_t *stream_options(bool counts_chunks)
{
    return counts_chunks ? json_pack("{s:b, s:b}", "include_usage", 1, "continuous_usage_stats", 1)
                         : json_pack("{s:b}", "include_usage", 1);
}

/* All but the prompt. NULL without memory. */
static json_t *settings(const struct replay_body *body, const struct arrival *arrival,
                        int32_t n_output, bool wants_ids)
{
    const int32_t n_samples = arrival->said.samples;
    json_t *root = json_pack("{s:s, s:i, s:b, s:o}", "model", body->model, "max_tokens", n_output,
                             "stream", 1, "stream_options", stream_options(n_samples == 1));
    if (root && !body->may_stop) {
        json_object_set_new(root, "min_tokens", json_integer(n_output));
        json_object_set_new(root, "ignore_eos", json_true());
    }
    if (n_samples > 1)
        json_object_set_new(root, "n", json_integer(n_samples));
    if (wants_ids)
        json_object_set_new(root, "return_token_ids", json_true());
    if (body->sends_priority && arrival->said.priority != 0)
        json_object_set_new(root, "priority", json_integer(arrival->said.priority));
    for (size_t i = 0; root && i < body->n_extra; i++) {
        const char *extra = body->extra[i];
        json_object_setn_new(root, extra, strcspn(extra, "="), extra_value(extra));
    }
    return root;
}

static int add(struct replay_text *text, const char *part)
{
    return replay_text_add(text, part, strlen(part));
}

static int add_prompt(const struct replay_body *body, const int32_t *ids, int32_t n,
                      struct replay_text *text)
{
    if (!body->chat && body->prompts == REPLAY_PROMPT_IDS)
        return add(text, ", \"prompt\": ") < 0 ? IFL_E_NOMEM : replay_prompt_list(ids, n, text);
    int rc = add(text, body->chat ? ", \"messages\": [{\"role\": \"user\", \"content\": \""
                                  : ", \"prompt\": \"");
    if (rc == 0)
        rc = replay_prompt_words(body->words, ids, n, text);
    return rc == 0 ? add(text, body->chat ? "\"}]" : "\"") : rc;
}

/* A prompt has thousands of ids: it is put behind the settings, without an object for each. */
int replay_body_write(const struct replay_body *body, const struct arrival *arrival,
                      int32_t n_output, bool wants_ids, const int32_t *ids,
                      struct replay_text *text, struct ifl_error *error)
{
    json_t *root = settings(body, arrival, n_output, wants_ids);
    char *json = root ? json_dumps(root, JSON_COMPACT) : NULL;
    int rc = json ? replay_text_add(text, json, strlen(json) - 1) : IFL_E_NOMEM;
    if (rc == 0)
        rc = add_prompt(body, ids, arrival->n_prompt, text);
    if (rc == 0)
        rc = replay_text_add(text, "}", sizeof "}");
    text->n -= rc == 0; /* the NUL */
    json_decref(root);
    free(json);
    return rc < 0 ? ifl_fail_nomem(error) : 0;
}
