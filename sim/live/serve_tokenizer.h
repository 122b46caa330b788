/* Texts to tokens and tokens to texts, by the model's tokenizer where workload.tokenizer names it,
 * else by the rule of serve_text.h.
 *
 * A prompt's text gets the special tokens that the model's own server adds around it
 * (ifl_tokenizer_frame), unless the request has add_special_tokens: false. Messages of a chat are
 * written into one text by the templates of live.chat; nothing is added around it. Answers that are
 * drawn are words that are a token each, so that an answer that comes back in a prompt has the same
 * tokens. */
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
    const uint32_t *words; /* words of drawn answers */
    size_t n_words;
    const struct live_chat *chat;
    char no_chat[200]; /* why chats are refused; "": they are not */
    const char *name;  /* for /version */
};

int served_text_open(struct served_text *text, const struct config *config,
                     struct ifl_error *error);
void served_text_close(struct served_text *text); /* zeroed memory is valid */

/* Adds the tokens of a text. Returns 0, IFL_E_NOMEM, or IFL_E_INPUT if the tokenizer fails on it.
 */
int served_text_add(const struct served_text *text, const char *bytes, size_t n_bytes, bool framed,
                    struct tokens *tokens, struct ifl_error *error);
/* True if a client may send the id. */
bool served_text_knows(const struct served_text *text, int64_t id);

/* ---- a chat ---- */

struct served_chat { /* messages one after the other; zeroed but for `text` and `tokens` */
    const struct served_text *text;
    struct tokens *tokens;
    struct evbuffer *written; /* with a tokenizer */
    bool has_part;            /* the message has a part */
};

/* Each message is begun, has parts, and is ended; the turn precedes the answer. All return 0 or
 * IFL_E_NOMEM. */
int served_chat_begin(struct served_chat *chat);
int served_chat_message(struct served_chat *chat, const char *role);
int served_chat_part(struct served_chat *chat, const char *role, const char *bytes, size_t n_bytes);
int served_chat_message_end(struct served_chat *chat, const char *role);
int served_chat_turn(struct served_chat *chat);
/* Adds the tokens of the chat. */
int served_chat_end(struct served_chat *chat, struct ifl_error *error);
void served_chat_free(struct served_chat *chat);

/* ---- an answer ---- */

/* Bytes of a character that is not complete yet. */
struct text_flow {
    unsigned char held[4];
    unsigned n;
};

/* Writes the token's text as the inside of a JSON string. Bytes that are no UTF-8 become U+FFFD;
 * bytes that may still become a character are kept back. */
void served_text_put(const struct served_text *text, struct text_flow *flow, int32_t token,
                     bool keeps_special, struct evbuffer *out);
/* Call it after the last token: bytes kept back are no character. */
void served_text_put_end(struct text_flow *flow, struct evbuffer *out);
/* Writes tokens as a complete text, special tokens included. */
void served_text_put_whole(const struct served_text *text, const struct tokens *tokens,
                           struct evbuffer *out);
/* The token as a vocabulary has it: U+2581 for blanks, or a letter for each byte. */
json_t *served_text_name(const struct served_text *text, int32_t token);

#endif
