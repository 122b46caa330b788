#include "live/serve_ask.h"

#include <math.h>
#include <string.h>

#include "inflight/minmax.h"

enum { MOST_PROMPTS = 1024, DEFAULT_MAX_TOKENS = 16 };

static const char bad_value[] = "BadRequestError", bad_form[] = "Bad Request";

static bool is_utf8(const char *text)
{
    json_t *json = json_string(text);
    json_decref(json);
    return json != NULL;
}

/* A text that was cut ends with a whole character; bytes that are no character otherwise are shown
 * as question marks. */
static void make_utf8(char *text)
{
    size_t n = strlen(text);
    for (int i = 0; i < 3 && n > 0 && (text[n - 1] & 0x80) && !is_utf8(text); i++)
        text[--n] = '\0';
    if (is_utf8(text))
        return;
    for (char *c = text; *c; c++)
        *c = (char)(*c & 0x80 ? '?' : *c);
}

bool refuse(struct answer_error *refusal, int status, const char *type, const char *param,
            const char *format, ...)
{
    va_list args;
    *refusal = (struct answer_error){.status = status, .type = type};
    snprintf(refusal->param, sizeof refusal->param, "%s", param ? param : "");
    va_start(args, format);
    vsnprintf(refusal->message, sizeof refusal->message, format, args);
    va_end(args);
    make_utf8(refusal->message);
    make_utf8(refusal->param);
    return false;
}

char *answer_error_json(const struct answer_error *refusal)
{
    json_t *error = json_pack("{s:{s:s,s:s,s:s?,s:i}}", "error", "message", refusal->message,
                              "type", refusal->type, "param",
                              *refusal->param ? refusal->param : NULL, "code", refusal->status);
    char *text = json_dumps(error, JSON_COMPACT);
    json_decref(error);
    return text;
}

/* ---- the form ---- */

static bool refuse_form(struct answer_error *refusal, const char *key, const char *kind,
                        const char *message, const json_t *found)
{
    char *text = json_dumps(found, JSON_COMPACT | JSON_ENCODE_ANY), shown[128];
    snprintf(shown, sizeof shown, "%s", text ? text : "");
    free(text);
    if (json_is_string(found))
        snprintf(shown, sizeof shown, "'%s'", json_string_value(found));
    make_utf8(shown);
    char param[64];
    snprintf(param, sizeof param, "body.%s", key);
    return refuse(refusal, 400, bad_form, param,
                  "1 validation error:\n  {'type': '%s', 'loc': '%s', 'msg': '%s', 'input': %s}",
                  kind, param, message, shown);
}

static bool read_whole(const json_t *body, const char *key, int32_t *value,
                       struct answer_error *refusal)
{
    const json_t *found = json_object_get(body, key);
    if (!found || json_is_null(found))
        return true;
    if (json_is_string(found))
        return refuse_form(refusal, key, "int_parsing",
                           "Input should be a valid integer, unable to parse string as an integer",
                           found);
    if (json_is_real(found) && json_real_value(found) != nearbyint(json_real_value(found)))
        return refuse_form(refusal, key, "int_from_float",
                           "Input should be a valid integer, got a number with a fractional part",
                           found);
    if (!json_is_number(found))
        return refuse_form(refusal, key, "int_type", "Input should be a valid integer", found);
    const double number = json_number_value(found);
    if (number < INT32_MIN || number > INT32_MAX)
        return refuse(refusal, 400, bad_value, key,
                      "%s is %.15g, expected a whole number from %d to %d. (parameter=%s)", key,
                      number, INT32_MIN, INT32_MAX, key);
    *value = (int32_t)number;
    return true;
}

static bool read_flag(const json_t *body, const char *key, bool *value,
                      struct answer_error *refusal)
{
    const json_t *found = json_object_get(body, key);
    if (!found || json_is_null(found))
        return true;
    if (!json_is_boolean(found))
        return refuse_form(refusal, key, "bool_type", "Input should be a valid boolean", found);
    *value = json_is_true(found);
    return true;
}

/* A name stands in CSV files: one line, and not too long. */
static bool read_name(const json_t *body, const char *key, char name[ASK_NAME_BYTES],
                      struct answer_error *refusal)
{
    const json_t *found = json_object_get(body, key);
    if (!found || json_is_null(found))
        return true;
    if (!json_is_string(found))
        return refuse_form(refusal, key, "string_type", "Input should be a valid string", found);
    const char *text = json_string_value(found);
    for (size_t i = 0; i < json_string_length(found); i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 0x7f)
            return refuse(refusal, 400, bad_value, key,
                          "%s has a control character, expected a name on one line. "
                          "(parameter=%s)",
                          key, key);
    if (strlen(text) >= ASK_NAME_BYTES)
        return refuse(refusal, 400, bad_value, key,
                      "%s has %zu bytes, expected at most %d. (parameter=%s)", key, strlen(text),
                      ASK_NAME_BYTES - 1, key);
    snprintf(name, ASK_NAME_BYTES, "%s", text);
    return true;
}

static json_t *parse(const char *body, size_t n_bytes, struct answer_error *refusal)
{
    json_error_t error;
    json_t *root = json_loadb(body, n_bytes, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, &error);
    if (json_is_object(root))
        return root;
    if (root) {
        refuse_form(refusal, "", "model_attributes_type",
                    "Input should be a valid dictionary or object to extract fields from", root);
        snprintf(refusal->param, sizeof refusal->param, "body");
        json_decref(root);
        return NULL;
    }
    const bool token = strncmp(error.text, "unexpected token", 16) == 0;
    char param[64];
    snprintf(param, sizeof param, "body.%d", error.position > 0 ? error.position - 1 : 0);
    refuse(refusal, 400, bad_form, param,
           "1 validation error:\n  {'type': 'json_invalid', 'loc': '%s', 'msg': 'JSON decode "
           "error', 'input': '<dict of 0 items>', 'ctx': {'error': '%s'}}",
           param, token ? "Expecting value" : error.text);
    return NULL;
}

/* ---- the model ---- */

static bool read_model(struct ask *ask, const json_t *body, const struct served_models *models,
                       struct answer_error *refusal)
{
    const json_t *found = json_object_get(body, "model");
    char known[256] = "";
    if (!found || json_is_null(found)) /* as vLLM: the first */
        return true;
    if (!json_is_string(found))
        return refuse_form(refusal, "model", "string_type", "Input should be a valid string",
                           found);
    for (size_t i = 0, at = 0; i < models->n; i++) {
        if (strcmp(json_string_value(found), models->of[i].name) == 0) {
            ask->model = i;
            return true;
        }
        if (at < sizeof known)
            at += (size_t)snprintf(known + at, sizeof known - at, "%s%s", i ? ", " : "",
                                   models->of[i].name);
    }
    return refuse(refusal, 404, "NotFoundError", "model",
                  "The model `%.200s` does not exist. Valid aliases: %s.", json_string_value(found),
                  known);
}

/* ---- prompts ---- */

static struct tokens *add_prompt(struct ask *ask)
{
    struct tokens *prompts = realloc(ask->prompts, (ask->n_prompts + 1) * sizeof *prompts);
    if (!prompts)
        return NULL;
    ask->prompts = prompts;
    prompts[ask->n_prompts] = (struct tokens){0};
    return &prompts[ask->n_prompts++];
}

static bool refuse_memory(struct answer_error *refusal)
{
    return refuse(refusal, 503, "ServiceUnavailableError", NULL,
                  "The server is out of memory. Please try again later.");
}

/* What a tokenizer does not take, or no memory. */
static bool refuse_text(int code, const struct ifl_error *error, const char *param,
                        struct answer_error *refusal)
{
    return code == IFL_E_INPUT
               ? refuse(refusal, 400, bad_value, param, "%.600s (parameter=%s)", error->text, param)
               : refuse_memory(refusal);
}

static bool add_text(struct ask *ask, const struct served_text *by, const json_t *text,
                     struct answer_error *refusal)
{
    struct tokens *prompt = add_prompt(ask);
    struct ifl_error error;
    if (!prompt)
        return refuse_memory(refusal);
    const int rc = served_text_add(by, json_string_value(text), json_string_length(text),
                                   ask->is_framed, prompt, &error);
    return rc == 0 || refuse_text(rc, &error, "prompt", refusal);
}

static bool add_ids(struct ask *ask, const struct served_text *by, const json_t *ids,
                    struct answer_error *refusal)
{
    struct tokens *prompt = add_prompt(ask);
    size_t i;
    const json_t *id;
    json_array_foreach(ids, i, id)
    {
        const json_int_t value = json_integer_value(id);
        if (!json_is_integer(id))
            return refuse_form(refusal, "prompt", "int_type", "Input should be a valid integer",
                               id);
        if (!served_text_knows(by, value))
            return refuse(refusal, 400, bad_value, "prompt",
                          "Token id %lld is out of vocabulary (parameter=prompt)",
                          (long long)value);
        if (!prompt || tokens_add(prompt, (int32_t)value) < 0)
            return refuse_memory(refusal);
    }
    return true;
}

static bool refuse_empty(struct answer_error *refusal)
{
    return refuse(refusal, 400, bad_value, "prompt",
                  "Either prompt or prompt_embeds must be provided and non-empty. "
                  "(parameter=prompt)");
}

static bool read_prompts(struct ask *ask, const json_t *body, const struct served_text *by,
                         struct answer_error *refusal)
{
    const json_t *prompt = json_object_get(body, "prompt"), *one;
    size_t i;
    if (!prompt || json_is_null(prompt))
        return refuse_empty(refusal);
    if (json_is_string(prompt))
        return json_string_length(prompt) > 0 ? add_text(ask, by, prompt, refusal)
                                              : refuse_empty(refusal);
    if (!json_is_array(prompt))
        return refuse_form(refusal, "prompt", "string_type", "Input should be a valid string",
                           prompt);
    if (json_array_size(prompt) == 0)
        return refuse_empty(refusal);
    if (json_is_integer(json_array_get(prompt, 0)))
        return add_ids(ask, by, prompt, refusal);
    if (json_array_size(prompt) > MOST_PROMPTS)
        return refuse(refusal, 400, bad_value, "prompt",
                      "%zu prompts, expected at most %d. (parameter=prompt)",
                      json_array_size(prompt), MOST_PROMPTS);
    json_array_foreach(prompt, i, one)
    {
        const bool is_list = json_is_array(one) && json_array_size(one) > 0;
        const bool is_text = json_is_string(one) && json_string_length(one) > 0;
        if (!is_list && !is_text)
            return refuse_empty(refusal);
        if (!(is_list ? add_ids(ask, by, one, refusal) : add_text(ask, by, one, refusal)))
            return false;
    }
    return true;
}

/* The content of a message: a text, or parts of which texts count. */
static bool add_parts(struct served_chat *chat, const char *role, const json_t *content,
                      struct answer_error *refusal)
{
    const json_t *part;
    size_t i;
    if (json_is_string(content))
        return served_chat_part(chat, role, json_string_value(content),
                                json_string_length(content)) == 0 ||
               refuse_memory(refusal);
    if (!content || json_is_null(content))
        return served_chat_part(chat, role, "", 0) == 0 || refuse_memory(refusal);
    if (!json_is_array(content))
        return refuse_form(refusal, "messages", "string_type", "Input should be a valid string",
                           content);
    json_array_foreach(content, i, part)
    {
        const json_t *text = json_object_get(part, "text");
        if (!json_is_string(text))
            return refuse(refusal, 400, bad_value, "messages",
                          "Only text is a content here. (parameter=messages)");
        if (served_chat_part(chat, role, json_string_value(text), json_string_length(text)) < 0)
            return refuse_memory(refusal);
    }
    return true;
}

static bool add_message(struct served_chat *chat, const json_t *message,
                        struct answer_error *refusal)
{
    const char *role = json_string_value(json_object_get(message, "role"));
    if (!json_is_object(message))
        return refuse_form(refusal, "messages", "dict_type", "Input should be a valid dictionary",
                           message);
    if (!role)
        return refuse_form(refusal, "messages", "missing", "Field required", message);
    if (served_chat_message(chat, role) < 0)
        return refuse_memory(refusal);
    return add_parts(chat, role, json_object_get(message, "content"), refusal) &&
           (served_chat_message_end(chat, role) == 0 || refuse_memory(refusal));
}

static bool add_messages(struct served_chat *chat, const json_t *messages,
                         struct answer_error *refusal)
{
    const json_t *message;
    struct ifl_error error;
    size_t i;
    if (served_chat_begin(chat) < 0)
        return refuse_memory(refusal);
    json_array_foreach(messages, i, message)
    {
        if (!add_message(chat, message, refusal))
            return false;
    }
    if (served_chat_turn(chat) < 0)
        return refuse_memory(refusal);
    const int rc = served_chat_end(chat, &error);
    return rc == 0 || refuse_text(rc, &error, "messages", refusal);
}

static bool read_messages(struct ask *ask, const json_t *body, const struct served_text *by,
                          struct answer_error *refusal)
{
    const json_t *messages = json_object_get(body, "messages");
    if (!messages)
        return refuse_form(refusal, "messages", "missing", "Field required", body);
    if (!json_is_array(messages))
        return refuse_form(refusal, "messages", "list_type", "Input should be a valid list",
                           messages);
    if (*by->no_chat)
        return refuse(refusal, 400, bad_value, "messages", "%s", by->no_chat);
    struct served_chat chat = {.text = by, .tokens = add_prompt(ask)};
    const bool good = chat.tokens ? add_messages(&chat, messages, refusal) : refuse_memory(refusal);
    served_chat_free(&chat);
    return good;
}

/* ---- lengths ---- */

static bool check_n(const char *key, int32_t value, int32_t least, struct answer_error *refusal)
{
    return value >= least || refuse(refusal, 400, bad_value, key,
                                    "%s must be at least %d, got %d. (parameter=%s, value=%d)", key,
                                    least, value, key, value);
}

static bool check_lengths(struct ask *ask, int32_t max_tokens, const struct served_model *model,
                          struct answer_error *refusal)
{
    const int32_t most = model->max_model_tokens;
    size_t longest = 0;
    for (size_t i = 0; i < ask->n_prompts; i++) {
        longest = ifl_max(longest, ask->prompts[i].n);
        if (ask->prompts[i].n == 0) /* a tokenizer may see nothing in blanks */
            return refuse(refusal, 400, bad_value, NULL, "The decoder prompt cannot be empty");
    }
    if (max_tokens > most)
        return refuse(refusal, 400, bad_value, "max_tokens",
                      "max_tokens=%d cannot be greater than max_model_len=%d. Please request "
                      "fewer output tokens. (parameter=max_tokens, value=%d)",
                      max_tokens, most, max_tokens);
    if (longest + (size_t)ifl_max(max_tokens, 0) > (size_t)most ||
        (max_tokens < 0 && longest >= (size_t)most))
        return refuse(refusal, 400, bad_value, "input_tokens",
                      "This model's maximum context length is %d tokens. However, you requested "
                      "%d output tokens and your prompt contains at least %zu input tokens, for a "
                      "total of at least %zu tokens. Please reduce the length of the input prompt "
                      "or the number of requested output tokens. (parameter=input_tokens, "
                      "value=%zu)",
                      most, ifl_max(max_tokens, 0), longest,
                      longest + (size_t)ifl_max(max_tokens, 0), longest);
    ask->max_tokens = max_tokens >= 0 ? max_tokens : most - (int32_t)longest;
    return true;
}

static bool read_lengths(struct ask *ask, const json_t *body, const struct served_models *models,
                         int32_t most_samples, struct answer_error *refusal)
{
    int32_t max_tokens = ask->chat ? -1 : DEFAULT_MAX_TOKENS, completion = INT32_MIN;
    const json_t *given = json_object_get(body, "max_tokens");
    const bool is_given = given && !json_is_null(given);
    ask->n = 1;
    if (!read_whole(body, "max_tokens", &max_tokens, refusal) ||
        !read_whole(body, "max_completion_tokens", &completion, refusal) ||
        !read_whole(body, "min_tokens", &ask->min_tokens, refusal) ||
        !read_whole(body, "n", &ask->n, refusal))
        return false;
    if (is_given && !check_n("max_tokens", max_tokens, 1, refusal))
        return false;
    if (ask->chat && completion != INT32_MIN) {
        max_tokens = completion;
        if (!check_n("max_completion_tokens", max_tokens, 1, refusal))
            return false;
    }
    if (!check_n("n", ask->n, 1, refusal) || !check_n("min_tokens", ask->min_tokens, 0, refusal))
        return false;
    if (ask->n > most_samples)
        return refuse(refusal, 400, bad_value, "n",
                      "n must be at most %d, got %d. (parameter=n, value=%d)", most_samples, ask->n,
                      ask->n);
    if (!check_lengths(ask, max_tokens, &models->of[ask->model], refusal))
        return false;
    if (ask->min_tokens > ask->max_tokens)
        return refuse(refusal, 400, bad_value, "min_tokens",
                      "min_tokens must be less than or equal to max_tokens=%d, got %d. "
                      "(parameter=min_tokens, value=%d)",
                      ask->max_tokens, ask->min_tokens, ask->min_tokens);
    ask->by_law = !ask->ignores_eos && ask->min_tokens < ask->max_tokens;
    return true;
}

/* Takes the number, or says why not: as a vLLM with --max-logprobs `most`. Without any not even
 * the token's own is known. */
static bool take_logprobs(const char *key, const char *of, int32_t n, int32_t most, int32_t *taken,
                          struct answer_error *refusal)
{
    if (n < -1)
        return refuse(refusal, 400, bad_value, key,
                      "`%s` must be a positive value or -1. (parameter=%s, value=%d)", key, key, n);
    if (n == 0 && most == 0)
        return refuse(refusal, 400, bad_value, key,
                      "%s logprobs are not available here. (parameter=%s, value=0)", of, key);
    if (n == -1 || n > most)
        return refuse(refusal, 400, bad_value, key,
                      "Requested %s logprobs of %d, which is greater than max allowed: %d "
                      "(parameter=%s, value=%d)",
                      of, n, most, key, n);
    *taken = n;
    return true;
}

static bool read_logprobs(struct ask *ask, const json_t *body, int32_t most,
                          struct answer_error *refusal)
{
    const char *key = ask->chat ? "top_logprobs" : "logprobs";
    int32_t of_answer = INT32_MIN, of_prompt = INT32_MIN;
    bool wanted = !ask->chat;
    ask->n_logprobs = -1;
    if ((ask->chat && !read_flag(body, "logprobs", &wanted, refusal)) ||
        !read_whole(body, key, &of_answer, refusal) ||
        !read_whole(body, "prompt_logprobs", &of_prompt, refusal))
        return false;
    if (ask->chat && !wanted && of_answer != INT32_MIN && of_answer != 0)
        return refuse(refusal, 400, bad_value, key,
                      "when using `top_logprobs`, `logprobs` must be set to true. "
                      "(parameter=top_logprobs)");
    if (ask->chat && wanted && of_answer == INT32_MIN)
        of_answer = 0;
    if (wanted && of_answer != INT32_MIN &&
        !take_logprobs(key, "sample", of_answer, most, &ask->n_logprobs, refusal))
        return false;
    return of_prompt == INT32_MIN ||
           take_logprobs("prompt_logprobs", "prompt", of_prompt, 0, &of_prompt, refusal);
}

static bool read_options(struct ask *ask, const json_t *body, struct answer_error *refusal)
{
    const json_t *options = json_object_get(body, "stream_options");
    bool skips_special = true;
    ask->is_framed = true;
    if (options && !json_is_null(options) && !json_is_object(options))
        return refuse_form(refusal, "stream_options", "model_attributes_type",
                           "Input should be a valid dictionary or object to extract fields from",
                           options);
    if (!read_flag(body, "stream", &ask->stream, refusal) ||
        !read_flag(body, "ignore_eos", &ask->ignores_eos, refusal) ||
        !read_flag(body, "echo", &ask->echoes, refusal) ||
        !read_flag(body, "return_token_ids", &ask->returns_ids, refusal) ||
        !read_flag(body, "add_special_tokens", &ask->is_framed, refusal) ||
        !read_flag(body, "skip_special_tokens", &skips_special, refusal) ||
        !read_whole(body, "priority", &ask->priority, refusal) ||
        !read_name(body, "user", ask->user, refusal) ||
        !read_name(body, "session_id", ask->session, refusal) ||
        !read_name(body, "request_id", ask->request_id, refusal))
        return false;
    ask->keeps_special = !skips_special;
    if (ask->echoes)
        return refuse(refusal, 400, bad_value, "echo",
                      "echo is not supported here, expected false. (parameter=echo)");
    if (json_is_object(options) && !ask->stream)
        return refuse(refusal, 400, bad_value, "stream_options",
                      "Stream options can only be defined when `stream=True`. "
                      "(parameter=stream_options)");
    return !options ||
           (read_flag(options, "include_usage", &ask->include_usage, refusal) &&
            read_flag(options, "continuous_usage_stats", &ask->continuous_usage, refusal));
}

bool ask_read(struct ask *ask, bool chat, const char *body, size_t n_bytes,
              const struct served_models *models, int32_t most_samples,
              struct answer_error *refusal)
{
    *ask = (struct ask){.chat = chat};
    json_t *root = parse(body, n_bytes, refusal);
    const bool good = root && read_options(ask, root, refusal) &&
                      read_logprobs(ask, root, models->most_logprobs, refusal) &&
                      read_model(ask, root, models, refusal) &&
                      (chat ? read_messages(ask, root, models->text, refusal)
                            : read_prompts(ask, root, models->text, refusal)) &&
                      read_lengths(ask, root, models, most_samples, refusal);
    json_decref(root);
    return good;
}

bool ask_read_prompt(struct ask *ask, const char *body, size_t n_bytes,
                     const struct served_models *models, struct answer_error *refusal)
{
    *ask = (struct ask){0};
    json_t *root = parse(body, n_bytes, refusal);
    const bool chat = root && json_object_get(root, "messages");
    ask->is_framed = true;
    const bool good = root && read_model(ask, root, models, refusal) &&
                      read_flag(root, "add_special_tokens", &ask->is_framed, refusal) &&
                      read_flag(root, "return_token_strs", &ask->names_tokens, refusal) &&
                      (chat ? read_messages(ask, root, models->text, refusal)
                            : read_prompts(ask, root, models->text, refusal));
    json_decref(root);
    return good;
}

bool ask_read_tokens(struct ask *ask, const char *body, size_t n_bytes,
                     const struct served_models *models, struct answer_error *refusal)
{
    *ask = (struct ask){0};
    json_t *root = parse(body, n_bytes, refusal);
    const json_t *ids = json_object_get(root, "tokens");
    bool good = root && read_model(ask, root, models, refusal);
    if (good && !json_is_array(ids))
        good =
            ids ? refuse_form(refusal, "tokens", "list_type", "Input should be a valid list", ids)
                : refuse_form(refusal, "tokens", "missing", "Field required", root);
    good = good && add_ids(ask, models->text, ids, refusal);
    json_decref(root);
    return good;
}

void ask_free(struct ask *ask)
{
    for (size_t i = 0; i < ask->n_prompts; i++)
        tokens_free(&ask->prompts[i]);
    free(ask->prompts);
    ask->prompts = NULL;
    ask->n_prompts = 0;
}
