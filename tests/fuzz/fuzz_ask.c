/* What a client sends to a server, from memory: the body of a completion, a chat, /tokenize or
 * /detokenize, by the first byte. Any bytes are a request within its limits or a refusal in JSON of
 * one line. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "live/serve_ask.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes);

enum { MOST_MODEL_TOKENS = 4096, MOST_SAMPLES = 8, MOST_LOGPROBS = 5 };

static void check_refusal(const struct answer_error *refusal)
{
    char *text = answer_error_json(refusal);
    ifl_require(refusal->status >= 400 && refusal->status < 600 && *refusal->message);
    ifl_require(text && !strchr(text, '\n'));
    json_t *json = json_loads(text, 0, NULL);
    ifl_require(json != NULL);
    json_decref(json);
    free(text);
}

static void check_answerable(const struct ask *ask)
{
    ifl_require(ask->n >= 1 && ask->n <= MOST_SAMPLES && ask->n_prompts >= 1 && ask->model == 0);
    ifl_require(ask->n_logprobs >= -1 && ask->n_logprobs <= MOST_LOGPROBS);
    ifl_require(ask->min_tokens >= 0 && ask->min_tokens <= ask->max_tokens);
    for (size_t i = 0; i < ask->n_prompts; i++)
        ifl_require(ask->prompts[i].n >= 1 &&
                    ask->prompts[i].n + (size_t)ask->max_tokens <= MOST_MODEL_TOKENS);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n_bytes)
{
    static const struct served_model model = {"m", "m", MOST_MODEL_TOKENS};
    static const struct live_chat forms;
    static const struct served_text text = {.chat = &forms};
    const struct served_models models = {&model, 1, &text, MOST_LOGPROBS};
    struct answer_error refusal = {0};
    struct ask ask = {0};
    bool taken;
    if (n_bytes < 2)
        return 0;
    const uint8_t kind = bytes[0] % 4;
    char *body = malloc(n_bytes - 1); /* of its exact size, so that a byte too far is found */
    ifl_require(body != NULL);
    memcpy(body, bytes + 1, n_bytes - 1);
    if (kind < 2)
        taken = ask_read(&ask, kind == 1, body, n_bytes - 1, &models, MOST_SAMPLES, &refusal);
    else
        taken = (kind == 2 ? ask_read_prompt : ask_read_tokens)(&ask, body, n_bytes - 1, &models,
                                                                &refusal);
    if (!taken)
        check_refusal(&refusal);
    else if (kind < 2)
        check_answerable(&ask);
    ask_free(&ask);
    free(body);
    return 0;
}
