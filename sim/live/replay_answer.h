/* The answer of a server, read chunk by chunk: how many tokens came, and how it ended.
 *
 * Tokens are counted by the first of these that a chunk has:
 *   - `usage`, the running count;
 *   - `token_ids`;
 *   - text, which counts as one token until a usage at the end gives the number.
 * A chunk without a choice has no token, nor has the first chunk of a chat, which names the role,
 * nor llama.cpp's last chunk, which has a choice without text, and the usage. If a stream has
 * several samples the running usage of a chunk is that of the chunk's sample, and the usage at the
 * end that of all samples.
 *
 * Formats: vLLM 0.32 (entrypoints/openai), SGLang 0.5 (srt/entrypoints/openai), llama.cpp's server
 * (tools/server). */
#ifndef SIM_LIVE_REPLAY_ANSWER_H
#define SIM_LIVE_REPLAY_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct replay_answer {
    int32_t n_samples;   /* answers in one stream; tokens of the first count */
    int32_t most_tokens; /* tokens requested for each sample; more are an error */
    int32_t *ids; /* [most_tokens] takes the tokens' ids. replay_answer_begin sets it to NULL; the
                     owner may set it afterwards */
    int32_t n_ids;
    int32_t n_tokens; /* tokens of a sample so far */
    bool counted;     /* the server gave the count: no chunk was counted as one token */
    bool has_usage;
    int32_t prompt_tokens, cached_tokens; /* -1: not said */
    int64_t queue_ns;                     /* queueing time reported by the server; IFL_NEVER: not
                                             reported */
    bool is_finished;                     /* some choice had a finish_reason */
    bool is_done;                         /* [DONE] */
    char error[256];                      /* what is wrong with the stream, or the server's
                                             message */
};

/* Begins an answer. */
void replay_answer_begin(struct replay_answer *answer, int32_t n_samples, int32_t most_tokens);
/* Handles an event. Returns the number of tokens in it, or -1; `error` then says why. */
int32_t replay_answer_take(struct replay_answer *answer, const char *data, size_t n);
/* Writes the message in the body of an error, or the beginning of the body: printable, in one line.
 */
void replay_answer_error(const char *body, size_t n, char *text, size_t n_text);
/* Replaces control characters by blanks. */
void replay_printable(char *text);

#endif
