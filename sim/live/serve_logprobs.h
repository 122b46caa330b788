/* Logarithms of probabilities in answers, in the form of vLLM's OpenAI server (0.32.0). */
#ifndef SIM_LIVE_SERVE_LOGPROBS_H
#define SIM_LIVE_SERVE_LOGPROBS_H

#include <event2/buffer.h>

#include "inflight/executor.h"

#include "live/serve_tokenizer.h"

struct weighed { /* tokens of an answer and what was said of them; zeroed, it is empty */
    struct weighed_token {
        int32_t token;
        bool is_known;
        struct ifl_logprobs logprobs;
    } * of; /* [n], owned */
    size_t n, cap;
    int64_t n_chars; /* of the texts of tokens before */
};

/* Adds a token. logprobs NULL: the engine gives none for it. Returns 0 or IFL_E_NOMEM. */
int weighed_add(struct weighed *weighed, int32_t token, const struct ifl_logprobs *logprobs);
void weighed_free(struct weighed *weighed);
/* Writes the object and empties the list. Its next token goes on behind the object. */
void weighed_put(struct weighed *weighed, const struct served_text *text, bool chat,
                 struct evbuffer *out);

#endif
