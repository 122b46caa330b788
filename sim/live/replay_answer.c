#include "live/replay_answer.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "inflight/time.h"

void replay_answer_begin(struct replay_answer *answer, int32_t n_samples, int32_t most_tokens)
{
    *answer = (struct replay_answer){.n_samples = n_samples,
                                     .most_tokens = most_tokens,
                                     .counted = true,
                                     .prompt_tokens = -1,
                                     .cached_tokens = -1,
                                     .queue_ns = IFL_NEVER};
}

void replay_printable(char *text)
{
    for (char *c = text; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = ' ';
}

static int32_t fail(struct replay_answer *answer, const char *what, const char *said)
{
    snprintf(answer->error, sizeof answer->error, "%s%s%.160s", what, said ? ": " : "",
             said ? said : "");
    replay_printable(answer->error);
    return -1;
}

/* The message of {"error": {"message": ...}}, {"error": ...}, {"message": ...} or {"detail": ...};
 * NULL if there is none. */
static const char *message_of(const json_t *root)
{
    const json_t *error = json_object_get(root, "error");
    const char *text = json_string_value(json_object_get(error, "message"));
    text = text ? text : json_string_value(error);
    text = text ? text : json_string_value(json_object_get(root, "message"));
    return text ? text : json_string_value(json_object_get(root, "detail"));
}

void replay_answer_error(const char *body, size_t n, char *text, size_t n_text)
{
    json_t *root = json_loadb(body, n, 0, NULL);
    const char *message = message_of(root);
    if (message)
        snprintf(text, n_text, "%.160s", message);
    else
        snprintf(text, n_text, "%.*s", (int)(n < 80 ? n : 80), body);
    replay_printable(text);
    json_decref(root);
}

/* ---- one chunk ---- */

/* A count in [0, 2^31), or -1. */
static int32_t count_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    const json_int_t count = json_integer_value(value);
    return json_is_integer(value) && count >= 0 && count <= INT32_MAX ? (int32_t)count : -1;
}

static bool says(const json_t *object, const char *key)
{
    return json_string_length(json_object_get(object, key)) > 0;
}

static bool has_text(const json_t *choice)
{
    const json_t *delta = json_object_get(choice, "delta");
    return says(choice, "text") || says(delta, "content") || says(delta, "reasoning_content") ||
           says(delta, "reasoning") || json_array_size(json_object_get(delta, "tool_calls")) > 0;
}

static void take_ids(struct replay_answer *answer, const json_t *ids)
{
    for (size_t i = 0; answer->ids && i < json_array_size(ids); i++)
        if (answer->n_ids < answer->most_tokens)
            answer->ids[answer->n_ids++] = (int32_t)json_integer_value(json_array_get(ids, i));
}

/* vLLM's time in the queue, with --enable-per-request-metrics. */
static void take_metrics(struct replay_answer *answer, const json_t *root)
{
    const json_t *queue = json_object_get(json_object_get(root, "metrics"), "queue_time_ms");
    const double ms = json_number_value(queue);
    if (json_is_number(queue) && ms >= 0 && ms < 1e12)
        answer->queue_ns = ifl_ns_from_ms(ms);
}

static void take_usage(struct replay_answer *answer, const json_t *usage)
{
    const int32_t prompt = count_of(usage, "prompt_tokens");
    const int32_t cached =
        count_of(json_object_get(usage, "prompt_tokens_details"), "cached_tokens");
    answer->prompt_tokens = prompt >= 0 ? prompt : answer->prompt_tokens;
    answer->cached_tokens = cached >= 0 ? cached : answer->cached_tokens;
}

/* Tokens of the first sample that a chunk with a choice brings. `usage` counts all so far of the
 * sample that the choice is of, -1: it is not there. */
static int32_t tokens_of(struct replay_answer *answer, const json_t *choice, int32_t usage)
{
    const json_t *ids = json_object_get(choice, "token_ids");
    const bool text = has_text(choice),
               ends = json_object_get(choice, "finish_reason") &&
                      !json_is_null(json_object_get(choice, "finish_reason"));
    const bool only_ends = ends && !text && answer->n_tokens > 0 && !answer->has_usage;
    answer->is_finished |= ends;
    if (json_integer_value(json_object_get(choice, "index")) != 0)
        return 0;
    take_ids(answer, ids);
    if (usage >= 0 && !only_ends)
        return usage - answer->n_tokens;
    if (json_is_array(ids))
        return (int32_t)json_array_size(ids);
    answer->counted = answer->counted && !text;
    return text;
}

static int32_t take_object(struct replay_answer *answer, const json_t *root)
{
    const json_t *usage = json_object_get(root, "usage");
    const json_t *choices = json_object_get(root, "choices");
    const json_t *choice = json_array_get(choices, 0);
    const int32_t total = count_of(usage, "completion_tokens");
    int32_t n = 0;
    if (json_object_get(root, "error") && !json_is_null(json_object_get(root, "error")))
        return fail(answer, "the server ended the stream", message_of(root));
    if (!json_is_array(choices))
        return fail(answer, "a chunk without a list `choices`", NULL);
    take_usage(answer, usage);
    take_metrics(answer, root);
    if (choice)
        n = tokens_of(answer, choice, total);
    if (n < 0)
        return fail(answer, "the running number of tokens falls", NULL);
    answer->n_tokens += n;
    if (answer->n_tokens > answer->most_tokens)
        return fail(answer, "more tokens than were asked for", NULL);
    if (total >= 0 && (!choice || answer->is_finished)) { /* what the server counts is right */
        const int32_t each = total / answer->n_samples;
        if (each > answer->most_tokens)
            return fail(answer, "usage counts more tokens than were asked for", NULL);
        answer->n_tokens = answer->n_samples == 1 || !choice ? each : answer->n_tokens;
    }
    answer->has_usage |= total >= 0;
    return n;
}

int32_t replay_answer_take(struct replay_answer *answer, const char *data, size_t n)
{
    static const char done[] = "[DONE]";
    json_error_t wrong;
    if (n == sizeof done - 1 && memcmp(data, done, n) == 0) {
        answer->is_done = true;
        return 0;
    }
    json_t *root = json_loadb(data, n, JSON_ALLOW_NUL, &wrong);
    if (!root)
        return fail(answer, "an event that is no JSON", wrong.text);
    const int32_t n_tokens = take_object(answer, root);
    json_decref(root);
    return n_tokens;
}
