/* Texts to tokens and tokens to texts, by the model's tokenizer where workload.tokenizer names it,
 * else by the rule of serve_text.h.
 *
 * A prompt's text gets what the model's own server puts around it (ifl_tokenizer_frame), unless the
 * request says add_special_tokens: false. Messages of a chat are written into one text by the
 * forms of live.chat, which gets nothing around it. Answers that are drawn are words that are a
 * token each, so that an answer that comes back in a prompt has the same tokens. */
#ifndef SIM_LIVE_SERVE_TOKENIZER_H
#define SIM_LIVE_SERVE_TOKENIZER_H

#include <event2/buffer.h>
#include <jansson.h>
#include <stdbool.h>

#include "inflight/tokenizer.h"

#include "config/config.h"
#include "live/serve_text.h"

struct served_text {
    struct ifl_tokenizer *tokenizer; /* NULL: there is none */
    struct ifl_encoder *encoder;
    struct ifl_decoder *decoder;
    struct ifl_token_frame frame;
    const uint32_t *words; /* [n_words] of answers that are drawn */
    size_t n_words;
    const struct live_chat *chat;
    char no_chat[200]; /* why chats are refused; "": they are not */
    const char *name;  /* for /version */
};

int served_text_open(struct served_text *text, const struct config *config,
                     struct ifl_error *error);
void served_text_close(struct served_text *text); /* zeroed memory is valid */

/* Adds the tokens of a text. IFL_E_NOMEM, or IFL_E_INPUT where the tokenizer gives up on it. */
int served_text_add(const struct served_text *text, const char *bytes, size_t n_bytes, bool framed,
                    struct tokens *tokens, struct ifl_error *error);
/* True if a client may send the id. */
bool served_text_knows(const struct served_text *text, int64_t id);

/* ---- a chat ---- */

struct served_chat { /* messages one after the other; zeroed but for `text` and `tokens` */
    const struct served_text *text;
    struct tokens *tokens;
    struct evbuffer *written; /* with a tokenizer */
    bool has_part;            /* of the message */
};

/* 0 or IFL_E_NOMEM. A message is begun, has parts, and ends; the turn is what the answer follows.
 */
int served_chat_begin(struct served_chat *chat);
int served_chat_message(struct served_chat *chat, const char *role);
int served_chat_part(struct served_chat *chat, const char *role, const char *bytes, size_t n_bytes);
int served_chat_message_end(struct served_chat *chat, const char *role);
int served_chat_turn(struct served_chat *chat);
/* Adds the tokens. */
int served_chat_end(struct served_chat *chat, struct ifl_error *error);
void served_chat_free(struct served_chat *chat);

/* ---- an answer ---- */

/* Bytes of a character that is not whole yet. */
struct text_flow {
    unsigned char held[4];
    unsigned n;
};

/* Writes the token's text as the inside of a string in JSON: what is no character of UTF-8 becomes
 * U+FFFD, what may become one waits. */
void served_text_put(const struct served_text *text, struct text_flow *flow, int32_t token,
                     bool keeps_special, struct evbuffer *out);
/* No token follows: what has waited is no character. */
void served_text_put_end(struct text_flow *flow, struct evbuffer *out);
/* A text of its own, special tokens included. */
void served_text_put_whole(const struct served_text *text, const struct tokens *tokens,
                           struct evbuffer *out);
/* The token as a vocabulary has it: U+2581 for blanks, or a letter for each byte. */
json_t *served_text_name(const struct served_text *text, int32_t token);

#endif
